// Converts single float32 values to integers of the same order and back (keys.hpp has the rule). -0 and 0 get the same
// integer.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace tonari {

inline std::int32_t float_key(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits < 0 ? -(bits & std::numeric_limits<std::int32_t>::max()) : bits;
}
inline float key_float(std::int32_t key) { return key < 0 ? -std::bit_cast<float>(-key) : std::bit_cast<float>(key); }

}  // namespace tonari
