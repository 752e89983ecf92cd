// Returned values of rows of bits, and keys that order pairs by them (bits/block.hpp).
#pragma once

#include <bit>
#include <cstdint>

namespace tonari {

constexpr int kBitIdBits = 33;  // fewer than 2^33 points
// most bits in a row: float32 represents all whole numbers up to this
constexpr std::int64_t kMostBits = std::int64_t{1} << 24;
constexpr std::uint64_t kBitIds = (std::uint64_t{1} << kBitIdBits) - 1;

inline std::uint64_t bit_key(float value, std::uint64_t point) {
  return std::uint64_t{std::bit_cast<std::uint32_t>(value)} << kBitIdBits | point;
}

inline float value_of_bit_key(std::uint64_t key) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(key >> kBitIdBits));
}

// The Jaccard distance of two rows, from the number of bits in which they differ and the number set in at least one.
inline float jaccard_value(std::int64_t differing, std::int64_t either) {
  return either == 0 ? 0.0f : static_cast<float>(static_cast<double>(differing) / static_cast<double>(either));
}

}  // namespace tonari
