// Lists of points in ascending order of number, each with a key: bounds on the k-th smallest key, and the points whose
// keys do not exceed a bound.
#pragma once

#include <cstdint>

#include "core/cpu.hpp"

namespace tonari {

struct KeyLists {
  // Memory behind a list that is appended to, beyond what it receives.
  static constexpr std::int64_t spill = 16;
  // Estimates that are appended at a time, at most.
  static constexpr std::int64_t batch = 2048;

  // At least the k-th smallest of `count` keys of float32 scores, 1 <= k <= count: with at most k + `slack` keys at or
  // below it, or the k-th smallest itself.
  std::int32_t (*bound)(const std::int32_t* keys, std::int64_t count, std::int64_t k, std::int64_t slack);
  // Appends those of `count` estimates that are at most `most`, which are of points `first`, first + 1, ...; none is
  // negative, so that their bits are their keys. The one at `left_out`, if any, counts as infinite. Returns how many were
  // appended; -1, and nothing is, if an estimate is not finite.
  std::int64_t (*append)(const float* estimates, std::int64_t count, std::int64_t left_out, std::int32_t first,
                         std::int32_t most, std::int32_t* keys, std::int32_t* numbers);
  // Drops those above `most`; returns how many are left, in their order.
  std::int64_t (*drop)(std::int32_t most, std::int32_t* keys, std::int32_t* numbers, std::int64_t count);
};

KeyLists key_lists(Isa isa);

KeyLists key_lists_generic();
#if TONARI_X86
KeyLists key_lists_avx2();
KeyLists key_lists_avx512();
#elif TONARI_ARM64
KeyLists key_lists_neon();
#endif

}  // namespace tonari
