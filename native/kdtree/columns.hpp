// The terms that a column adds to the bound of a box, to the score of a point, and to its exact value. Internal linkage
// throughout: each instruction set compiles its own copy.
#pragma once

#include "exact/refine_tile.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

// A square, or `of_distance` of the term (metrics.hpp). Bounds of boxes are rounded in the same way everywhere, so that
// every machine visits the same leaves; scores of points may be fused, since exact values follow.
template <class STEP>
struct Columns {
  template <class F> static F bound(F sum, F t) {
    if constexpr (std::is_same_v<STEP, SquareStep>) return sum + t * t;
    else return STEP::join(sum, STEP::of_distance(abs(t)));
  }
  template <class F> static F score(F sum, F t) {
    if constexpr (std::is_same_v<STEP, SquareStep>) return fma(t, t, sum);
    else return bound(sum, t);
  }
};

// The values of a register of adjacent points, with columns `stride` apart, in the defined order of sums.
template <class STEP, class T>
inline void exact_columns(const double* q, const T* x, std::int64_t stride, std::int64_t d, double* values) {
  using Doubles = Register<double>;
  Doubles sums[kLanes];
  const int used = d < kLanes ? static_cast<int>(d) : kLanes;
  for (int i = 0; i < used; ++i) {
    sums[i] = STEP::apply(Doubles(0.0), Doubles(q[i]), Doubles::load(x + i * stride));
  }
  for (std::int64_t i = kLanes; i < d; ++i) {
    auto& sum = sums[i % kLanes];
    sum = STEP::apply(sum, Doubles(q[i]), Doubles::load(x + i * stride));
  }
  // higher lanes, which have no column, would only add zero
  for (int half = kLanes / 2, lanes = used; half > 0; half /= 2) {
    for (int i = 0; i + half < lanes; ++i) sums[i] = STEP::join(sums[i], sums[i + half]);
    lanes = lanes < half ? lanes : half;
  }
  sums[0].store(values);
}

}  // namespace
}  // namespace tonari
