// Positions of samples: they have no pattern, and are the same in every run.
#pragma once

#include <cstdint>

namespace tonari {
namespace {

// A number in [0, range) that depends on every bit of the seed (the finalizer of splitmix64); range < 2^31.
inline std::int64_t scattered(std::int64_t seed, std::int64_t range) {
  auto bits = (static_cast<std::uint64_t>(seed) + 1) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return static_cast<std::int64_t>((bits >> 32) * static_cast<std::uint64_t>(range) >> 32);
}

}  // namespace
}  // namespace tonari
