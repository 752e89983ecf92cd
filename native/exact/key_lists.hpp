// Lists of points in ascending order of number, each with a key: bounds on the k-th smallest key, and the points whose
// keys do not exceed a bound.
#pragma once

#include <cstdint>

#include "core/cpu.hpp"

namespace tonari {

struct KeyLists {
  // Number of entries of memory that a list needs after the appended ones.
  static constexpr std::int64_t spill = 16;
  // The largest number of estimates that are appended at once.
  static constexpr std::int64_t batch = 2048;

  // Returns a bound on the k-th smallest of `count` keys of float32 scores from above, 1 <= k <= count. At most
  // k + `slack` keys are at or below the bound, unless it is the k-th smallest itself.
  std::int32_t (*bound)(const std::int32_t* keys, std::int64_t count, std::int64_t k, std::int64_t slack);
  // Appends the estimates that are at most `most`, of `count` estimates of the points `first`, first + 1, ...; they are
  // not negative, so their bits are their keys. The estimate at `left_out`, if any, counts as infinite. Returns the
  // number of appended ones; -1 if an estimate is not finite, and then appends none.
  std::int64_t (*append)(const float* estimates, std::int64_t count, std::int64_t left_out, std::int32_t first,
                         std::int32_t most, std::int32_t* keys, std::int32_t* numbers);
  // Drops the entries whose keys are above `most`; returns the number of remaining ones, which keep their order.
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
