// See missing/loops.hpp. Internal linkage: each instruction set compiles its own copy.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/row_values.hpp"
#include "missing/loops.hpp"
#include "missing/points.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kColumns = 16;  // columns between two tests whether all points are too far

// sum + t t, or the sum where t is NaN.
inline Register<float> add_square(Register<float> sum, Register<float> t) {
#if defined(__AVX512F__)
  const __mmask16 there = _mm512_cmp_ps_mask(t.parts.raw, t.parts.raw, _CMP_ORD_Q);  // GCC does not merge a choose()
  return Register<float>(_mm512_mask3_fmadd_ps(t.parts.raw, t.parts.raw, sum.parts.raw, there));
#else
  const Register<float> known = choose(t == t, t, Register<float>(0.0f));
  return fma(known, known, sum);
#endif
}

// The largest sum of each point that is not excluded; negative for points without a common column.
inline void find_limits(const MissingGroup& group, const MissingQuery& query, float slope, float offset,
                        float* limits) {
  std::int32_t shared[kMissingGroup] = {};
  for (std::int64_t w = 0; w < query.words; ++w) {
    const std::uint64_t* there = group.present + w * kMissingGroup;
    const std::uint64_t own = query.present[w];
    for (std::int64_t i = 0; i < kMissingGroup; ++i) shared[i] += std::popcount(there[i] & own);
  }
  for (std::int64_t i = 0; i < kMissingGroup; ++i) {
    limits[i] = shared[i] > 0 ? slope * static_cast<float>(shared[i]) + offset : -1.0f;
  }
}

std::uint64_t screen(const MissingGroup& group, const MissingQuery& query, float slope, float offset) {
  using Floats = Register<float>;
  constexpr std::int64_t lanes = kRegisterLanes<float>, at_once = std::min<std::int64_t>(kMissingGroup, 8 * lanes);
  constexpr std::int64_t registers = at_once / lanes;
  alignas(64) float limits[kMissingGroup];
  find_limits(group, query, slope, offset, limits);
  std::uint64_t found = 0;
  for (std::int64_t first = 0; first < kMissingGroup; first += at_once) {
    Floats sums[registers];
    for (Floats& sum : sums) sum = Floats(0.0f);
    std::uint64_t open = 0;
    for (std::int64_t begin = 0; begin == 0 || begin < query.count; begin += kColumns) {
      const std::int64_t end = std::min(begin + kColumns, query.count);
      for (std::int64_t j = begin; j < end; ++j) {
        const float* from = group.values + query.columns[j] * kMissingGroup + first;
        const Floats x(query.values[j]);
        for (std::int64_t r = 0; r < registers; ++r) sums[r] = add_square(sums[r], x - Floats::load(from + r * lanes));
      }
      open = 0;
      for (std::int64_t r = 0; r < registers; ++r) {  // a comparison with NaN is false, which excludes no point
        const std::uint64_t far = bits(sums[r] > Floats::load(limits + first + r * lanes));
        open |= (~far & ((std::uint64_t{1} << lanes) - 1)) << (first + r * lanes);
      }
      if (open == 0) break;
    }
    found |= open;
  }
  return found;
}

double value(const double* query, const void* row, Dtype dtype, std::int64_t d) {
  using Lanes = Vec<double, kLanes>;
  return with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* const from = static_cast<const T*>(row);
    Lanes sums = 0.0;
    int count = 0;
    const auto add = [&](Lanes q, Lanes x) {
      const Lanes t = q - x;
      const auto there = t == t;
      count += std::popcount(bits(there));
      sums = sums + choose(there, t * t, Lanes(0.0));
    };
    std::int64_t i = 0;
    for (; i + kLanes <= d; i += kLanes) add(Lanes::load(query + i), Lanes::load(from + i));
    if (i < d) {
      T rest[kLanes] = {};
      std::copy(from + i, from + d, rest);
      add(Lanes::load(query + i), Lanes::load(rest));
    }
    if (count == 0) return std::numeric_limits<double>::quiet_NaN();
    const double sum = fold(sums, [](auto a, auto b) { return a + b; });
    return std::sqrt(sum * (static_cast<double>(d) / count));
  });
}

}  // namespace
}  // namespace tonari
