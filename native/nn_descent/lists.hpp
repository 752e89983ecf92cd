// The entries of neighbour lists during NN-Descent; tonari.nn_descent.entries defines the same in Python.
#pragma once

#include <cstdint>

namespace tonari {

constexpr std::int32_t kNew = std::int32_t{1} << 30;  // the entry has not yet been compared with the others
constexpr std::int32_t kIdMask = kNew - 1;
constexpr std::int32_t kMissing = -1;

// The factor that orders ids pseudo-randomly, in the same way each time. It is odd, so that no two ids get the same
// place.
constexpr std::uint32_t kScatter = 0x9E3779B1u;

constexpr std::uint32_t inverse_of_odd(std::uint32_t factor) {  // modulo 2^32, by Newton's iteration
  std::uint32_t inverse = factor;
  for (int i = 0; i < 5; ++i) inverse *= 2 - factor * inverse;
  return inverse;
}
constexpr std::uint32_t kGather = inverse_of_odd(kScatter);
static_assert(kScatter * kGather == 1);

}  // namespace tonari
