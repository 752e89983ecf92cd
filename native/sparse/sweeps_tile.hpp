// See sparse/sweeps.hpp. Each file that includes this is compiled for one instruction set.
#pragma once

#include "sparse/sweeps.hpp"

namespace tonari {
namespace {

void add_columns(float* __restrict sums, std::int64_t length, const float* const* columns, const float* weights,
                 std::int64_t count) {
  std::int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    const float *a = columns[j], *b = columns[j + 1], *c = columns[j + 2], *d = columns[j + 3];
    const float p = weights[j], q = weights[j + 1], r = weights[j + 2], s = weights[j + 3];
    for (std::int64_t i = 0; i < length; ++i) sums[i] = (((sums[i] + p * a[i]) + q * b[i]) + r * c[i]) + s * d[i];
  }
  for (; j < count; ++j) {
    const float* a = columns[j];
    const float p = weights[j];
    for (std::int64_t i = 0; i < length; ++i) sums[i] += p * a[i];
  }
}

template <bool HALF, bool REACH, bool REST>
std::int64_t collect_below(const SparseBounds& of, std::int64_t begin, std::int64_t end, float most,
                           std::int32_t* found, std::int64_t room) {
  constexpr std::int64_t kStep = 64;
  const float* sums = of.sums;
  const auto reached = [&](std::int64_t i) {
    float low = HALF ? of.half_scale * of.half[i] - sums[i] : -sums[i];
    low -= REACH ? of.error * of.reach[i] : of.error;
    if constexpr (REST) low -= of.rest_scale * of.rest[i];
    return !(low > most);
  };
  std::int64_t count = 0;
  for (std::int64_t i = begin; i < end; i += kStep) {
    const std::int64_t last = end - i < kStep ? end : i + kStep;
    int any = 0;
    if (last == i + kStep) {
      for (std::int64_t j = 0; j < kStep; ++j) any |= static_cast<int>(reached(i + j));
      if (any == 0) continue;
    }
    for (std::int64_t j = i; j < last; ++j) {
      if (!reached(j)) continue;
      if (count == room) return -1;
      found[count++] = static_cast<std::int32_t>(j);
    }
  }
  return count;
}

std::int64_t collect(const SparseBounds& of, std::int64_t begin, std::int64_t end, float most, std::int32_t* found,
                     std::int64_t room) {
  if (of.half != nullptr) {
    return of.rest != nullptr ? collect_below<true, true, true>(of, begin, end, most, found, room)
                              : collect_below<true, true, false>(of, begin, end, most, found, room);
  }
  if (of.reach != nullptr) {
    return of.rest != nullptr ? collect_below<false, true, true>(of, begin, end, most, found, room)
                              : collect_below<false, true, false>(of, begin, end, most, found, room);
  }
  return of.rest != nullptr ? collect_below<false, false, true>(of, begin, end, most, found, room)
                            : collect_below<false, false, false>(of, begin, end, most, found, room);
}

}  // namespace
}  // namespace tonari
