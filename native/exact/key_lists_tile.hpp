// Lists of keys, a register at a time. Internal linkage throughout: each instruction set compiles its own copy.
#pragma once

#include <cstring>

#include "exact/key_lists.hpp"
#include "select/compact.hpp"
#include "select/float_keys.hpp"
#include "select/halving.hpp"

namespace tonari {
namespace {

static_assert(KeyLists::spill >= kSpill);

// The score at which a range of scores is halved: alternately the mean of both ends, and the middle of their keys. Neither
// outliers nor a change of sign then makes the search long.
struct MiddleScore {
  bool by_value = true;
  std::int32_t operator()(std::int32_t lower, std::int32_t upper) {
    const std::int32_t middle =
        by_value ? float_key(key_float(lower) / 2 + key_float(upper) / 2) : MiddleKey{}(lower, upper);
    by_value = !by_value;
    return middle;
  }
};

inline std::int32_t bound_of_keys(const std::int32_t* keys, std::int64_t count, std::int64_t k, std::int64_t slack) {
  return at_least_kth(keys, count, k, slack, MiddleScore{}).key;
}

inline std::int64_t append_estimates(const float* estimates, std::int64_t count, std::int64_t left_out,
                                     std::int32_t first, std::int32_t most, std::int32_t* keys, std::int32_t* numbers) {
  constexpr std::uint32_t infinite = 0x7f800000;
  alignas(64) std::int32_t bits[KeyLists::batch];
  std::memcpy(bits, estimates, static_cast<std::size_t>(count) * sizeof *bits);
  std::uint32_t largest = 0;  // of NaN with a sign, too
  for (std::int64_t j = 0; j < count; ++j) {
    const auto each = static_cast<std::uint32_t>(bits[j]);
    largest = each > largest ? each : largest;
  }
  if (largest >= infinite) return -1;
  if (left_out >= 0) bits[left_out] = infinite;
  return compact<false>(most, count, static_cast<const std::int32_t*>(bits), first, count, keys, numbers);
}

inline std::int64_t drop_keys(std::int32_t most, std::int32_t* keys, std::int32_t* numbers, std::int64_t count) {
  const std::int32_t *from = keys, *named = numbers;
  return compact<false>(most, count, from, named, count, keys, numbers);
}

inline KeyLists key_lists_tile() { return {bound_of_keys, append_estimates, drop_keys}; }

}  // namespace
}  // namespace tonari
