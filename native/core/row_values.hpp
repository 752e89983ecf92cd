// A single value of a row, of any stored type; rows.hpp reads whole rows.
#pragma once

#include <bit>
#include <type_traits>

#include "core/common.hpp"

namespace tonari {

// The bits of numbers for which C++20 has no type.
enum class Float16 : std::uint16_t {};
enum class Bfloat16 : std::uint16_t {};

// Converts IEEE half to single by changing the exponent; subnormals are correct too, because 2^-14 * fraction is exact.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t biased = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (biased << 23) | (fraction << 13));
}

// bfloat16 is the upper half of a single.
inline float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Calls visit with a zero of the type in which `dtype` is stored.
template <class Visit>
auto with_type(Dtype dtype, Visit&& visit) {
  switch (dtype) {
    case Dtype::f32: return visit(float{});
    case Dtype::f16: return visit(Float16{});
    case Dtype::bf16: return visit(Bfloat16{});
    case Dtype::f64: return visit(double{});
    case Dtype::u8: return visit(std::uint8_t{});
    case Dtype::i8: break;
  }
  return visit(std::int8_t{});
}

// Converts a stored value to T, which can represent it exactly.
template <class T, class Stored>
inline T to_value(Stored value) {
  if constexpr (std::is_same_v<Stored, Float16>) {
    return static_cast<T>(half_to_float(static_cast<std::uint16_t>(value)));
  } else if constexpr (std::is_same_v<Stored, Bfloat16>) {
    return static_cast<T>(bfloat16_to_float(static_cast<std::uint16_t>(value)));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace tonari
