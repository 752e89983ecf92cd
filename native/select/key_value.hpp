// Converts keys back to numbers, for ratios of values (matsumoto2015, equation 3).
#pragma once

#include <bit>
#include <cmath>

#include "select/keys.hpp"

namespace tonari {
namespace {

// The number that a key represents.
template <class Key>
double key_value(const SelectTask& task, Key key) {
  if (task.largest) key = ~key;
  if (task.type == ValueType::i32 || task.type == ValueType::u8) return static_cast<double>(key);
  const Key bits = key < 0 ? -key : key;
  double magnitude = 0;
  if (task.type == ValueType::f64) {
    magnitude = std::bit_cast<double>(static_cast<std::int64_t>(bits));
  } else if (task.type == ValueType::f16) {
    const int exponent = static_cast<int>(bits >> 10), fraction = static_cast<int>(bits & 1023);
    magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  } else {
    const int shift = task.type == ValueType::bf16 ? 16 : 0;
    magnitude = static_cast<double>(std::bit_cast<float>(static_cast<std::int32_t>(bits << shift)));
  }
  return key < 0 ? -magnitude : magnitude;
}

}  // namespace
}  // namespace tonari
