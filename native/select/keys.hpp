// Values as integers of the same order, so that every method compares integers only.
//
//   float bits  s mmmmmmm...   key = s ? -m : m        -0.0 and 0.0 are both 0; NaN is the largest possible key
//   largest first              key = ~key              (NaN stays last)
//   word = key, sign flipped | index                   unsigned; smaller index wins a tie
//
// float64 float64 has 64-bit keys, all other types 32-bit ones. Internal linkage: each instruction set compiles its own
// copy.
#pragma once

#include <cstring>
#include <limits>
#include <type_traits>

#include "select/task.hpp"

namespace tonari {
namespace {

template <class Key>
constexpr Key kLastKey = std::numeric_limits<Key>::max();

__extension__ typedef unsigned __int128 Word128;

template <class Key>
using Word = std::conditional_t<sizeof(Key) == 4, std::uint64_t, Word128>;

template <class Key>
Word<Key> pack_word(Key key, std::int32_t index) {
  using Bits = std::make_unsigned_t<Key>;
  constexpr Bits sign = Bits{1} << (8 * sizeof(Key) - 1);
  return static_cast<Word<Key>>(static_cast<Bits>(key) ^ sign) << 32 | static_cast<std::uint32_t>(index);
}
template <class Key>
std::int32_t word_index(Word<Key> word) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(word));
}
template <class Key>
Key word_key(Word<Key> word) {
  using Bits = std::make_unsigned_t<Key>;
  constexpr Bits sign = Bits{1} << (8 * sizeof(Key) - 1);
  return static_cast<Key>(static_cast<Bits>(word >> 32) ^ sign);
}

// Floating-point formats of 16, 32 and 64 bits; they differ only in the bits of +inf.
template <class Key, class Raw, Key INFINITE, bool LARGEST>
Key convert_floats(const Raw* source, std::int64_t count, Key* __restrict out) {
  constexpr int shift = 8 * sizeof(Key) - 1;
  constexpr Key magnitude_bits = static_cast<Key>(std::numeric_limits<Raw>::max());
  Key greatest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Key bits = source[i];  // sign-extended
    const Key magnitude = bits & magnitude_bits, sign = bits >> shift;
    const Key key = (magnitude ^ sign) - sign;
    greatest = magnitude > greatest ? magnitude : greatest;
    out[i] = magnitude > INFINITE ? kLastKey<Key> : LARGEST ? static_cast<Key>(~key) : key;
  }
  return greatest;
}

template <class Raw, bool LARGEST>
void convert_whole(const Raw* source, std::int64_t count, std::int32_t* __restrict out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t key = source[i];
    out[i] = LARGEST ? ~key : key;
  }
}

// Reads rows as keys, and detects NaN.
template <class Key>
class KeyReader {
 public:
  explicit KeyReader(const SelectTask& task) : task_(task) {}

  // Keys of values [first, first + count) of a row: in `scratch`, or the row itself if its values are keys already. Not
  // inlined, because it has long loops for every type of values.
  [[gnu::noinline]] const Key* read(std::int64_t row, std::int64_t first, std::int64_t count, Key* scratch) {
    const std::int64_t at = row * task_.stride + first;
    if constexpr (sizeof(Key) == 8) {
      floats<std::int64_t, 0x7ff0000000000000>(at, count, scratch);
    } else {
      switch (task_.type) {
        case ValueType::f32: floats<std::int32_t, 0x7f800000>(at, count, scratch); break;
        case ValueType::f16: floats<std::int16_t, 0x7c00>(at, count, scratch); break;
        case ValueType::bf16: floats<std::int16_t, 0x7f80>(at, count, scratch); break;
        case ValueType::u8: whole<std::uint8_t>(at, count, scratch); break;
        case ValueType::i32:
          if (!task_.largest) return static_cast<const std::int32_t*>(task_.values) + at;
          whole<std::int32_t>(at, count, scratch);
          break;
        case ValueType::f64: break;  // has 64-bit keys
      }
    }
    return scratch;
  }

  // Whether a NaN was read since the last call.
  bool saw_nan() {
    const bool saw = saw_nan_;
    saw_nan_ = false;
    return saw;
  }

 private:
  template <class Raw, Key INFINITE>
  void floats(std::int64_t at, std::int64_t count, Key* scratch) {
    const Raw* source = static_cast<const Raw*>(task_.values) + at;
    const Key greatest = task_.largest ? convert_floats<Key, Raw, INFINITE, true>(source, count, scratch)
                                       : convert_floats<Key, Raw, INFINITE, false>(source, count, scratch);
    saw_nan_ |= greatest > INFINITE;
  }
  template <class Raw>
  void whole(std::int64_t at, std::int64_t count, Key* scratch) {
    const Raw* source = static_cast<const Raw*>(task_.values) + at;
    task_.largest ? convert_whole<Raw, true>(source, count, scratch)
                  : convert_whole<Raw, false>(source, count, scratch);
  }

  const SelectTask& task_;
  bool saw_nan_ = false;
};

}  // namespace
}  // namespace tonari
