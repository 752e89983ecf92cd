// The defined order of sums for vectors of WIDTH float64: 16 / WIDTH registers play the 16 lanes.
// Internal linkage throughout: each instruction set compiles its own copy.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#include "core/row_values.hpp"
#include "exact/refine.hpp"

namespace tonari {
namespace {

// GCC wants literal sizes on vector types.
template <int WIDTH>
struct VectorTypes;
template <>
struct VectorTypes<2> {
  typedef double F64 __attribute__((vector_size(16)));
  typedef float F32 __attribute__((vector_size(8)));
  typedef std::uint32_t U32 __attribute__((vector_size(8)));
  typedef std::uint16_t U16 __attribute__((vector_size(4)));
};
template <>
struct VectorTypes<4> {
  typedef double F64 __attribute__((vector_size(32)));
  typedef float F32 __attribute__((vector_size(16)));
  typedef std::uint32_t U32 __attribute__((vector_size(16)));
  typedef std::uint16_t U16 __attribute__((vector_size(8)));
};
template <>
struct VectorTypes<8> {
  typedef double F64 __attribute__((vector_size(64)));
  typedef float F32 __attribute__((vector_size(32)));
  typedef std::uint32_t U32 __attribute__((vector_size(32)));
  typedef std::uint16_t U16 __attribute__((vector_size(16)));
};

template <int WIDTH>
typename VectorTypes<WIDTH>::F64 load(const double* p) {
  typename VectorTypes<WIDTH>::F64 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <int WIDTH>
typename VectorTypes<WIDTH>::F64 load(const float* p) {
  typename VectorTypes<WIDTH>::F32 v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, typename VectorTypes<WIDTH>::F64);
}
template <int WIDTH>
typename VectorTypes<WIDTH>::F64 load(const Bfloat16* p) {
  typename VectorTypes<WIDTH>::U16 halves;
  std::memcpy(&halves, p, sizeof halves);
  const auto bits = __builtin_convertvector(halves, typename VectorTypes<WIDTH>::U32) << 16;
  const auto v = std::bit_cast<typename VectorTypes<WIDTH>::F32>(bits);
  return __builtin_convertvector(v, typename VectorTypes<WIDTH>::F64);
}

// What one element adds to its lane, and how lanes are joined.
struct SumStep {
  template <class T> static T join(T a, T b) { return a + b; }
};
struct SquareStep : SumStep {
  template <class T> static T apply(T sum, T q, T x) { return sum + (q - x) * (q - x); }
};
struct ProductStep : SumStep {
  template <class T> static T apply(T sum, T q, T x) { return sum + q * x; }
};
struct PointSquareStep : SumStep {
  template <class T> static T apply(T sum, T, T x) { return sum + x * x; }
};
// The same of an elementwise metric's struct.
template <class TERM>
struct TermStep {
  static constexpr bool maximum = TERM::maximum;
  template <class T> static T apply(T sum, T q, T x) { return join(sum, TERM::term(q, x)); }
  template <class T> static T join(T a, T b) {
    if constexpr (TERM::maximum) return b > a ? b : a;
    else return a + b;
  }
};

// Lane j sums elements j, j + 16, ...; the end of the row is filled with zeros, which change no sum; then halves are
// joined: 16 -> 8 -> 4 -> 2 -> 1, first between registers, then inside the last one.
template <class STEP, int WIDTH, class T>
inline double reduce(const double* q, const T* x, std::int64_t d) {
  constexpr int registers = kLanes / WIDTH;
  typename VectorTypes<WIDTH>::F64 sums[registers] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (int r = 0; r < registers; ++r) {
      sums[r] = STEP::apply(sums[r], load<WIDTH>(q + i + r * WIDTH), load<WIDTH>(x + i + r * WIDTH));
    }
  }
  if (i < d) {
    double q_end[kLanes] = {};
    T x_end[kLanes] = {};
    for (int j = 0; i + j < d; ++j) q_end[j] = q[i + j], x_end[j] = x[i + j];
    for (int r = 0; r < registers; ++r) {
      sums[r] = STEP::apply(sums[r], load<WIDTH>(q_end + r * WIDTH), load<WIDTH>(x_end + r * WIDTH));
    }
  }
  for (int half = registers / 2; half > 0; half /= 2) {
    for (int r = 0; r < half; ++r) sums[r] = STEP::join(sums[r], sums[r + half]);
  }
  double lanes[WIDTH];
  std::memcpy(lanes, sums, sizeof lanes);
  for (int half = WIDTH / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lanes[j] = STEP::join(lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

inline double angular_distance(double product, double query_norm, double point_norm) {
  if (query_norm == 0 || point_norm == 0) return 1.0;
  const double distance = 1.0 - product / (query_norm * point_norm);
  return distance < 0 ? 0.0 : distance > 2 ? 2.0 : distance;
}

template <int WIDTH, class T>
double value_of(Metric metric, const ExactQuery& query, const T* x, std::int64_t d) {
  const double* q = query.row.data();
  switch (family_of(metric)) {
    case Family::squares: {
      const double square = reduce<SquareStep, WIDTH>(q, x, d);
      return takes_root(metric) ? std::sqrt(square) : square;
    }
    case Family::products: return reduce<ProductStep, WIDTH>(q, x, d);
    case Family::angles:
      return angular_distance(reduce<ProductStep, WIDTH>(q, x, d), query.norm,
                              std::sqrt(reduce<PointSquareStep, WIDTH>(q, x, d)));
    case Family::terms: break;
  }
  return with_term(metric, [&](auto term) { return reduce<TermStep<decltype(term)>, WIDTH>(q, x, d); });
}

template <int WIDTH>
void exact_values_tile(Metric metric, const ExactQuery& query, const RowsView& points, const std::int64_t* ids,
                       std::int64_t count, double* values) {
  const std::int64_t d = points.d;
  const bool plain = !removes_mean(metric);
  if (plain && (points.dtype == Dtype::f32 || points.dtype == Dtype::f64 || points.dtype == Dtype::bf16)) {
    constexpr std::int64_t ahead = 8;  // rows are scattered: ask for a later one while this one is summed
    const std::int64_t bytes = d * static_cast<std::int64_t>(dtype_size(points.dtype));
    for (std::int64_t j = 0; j < count; ++j) {
      if (j + ahead < count) {
        const char* next = static_cast<const char*>(row_pointer(points, ids[j + ahead]));
        for (std::int64_t at = 0; at < bytes && at < 1024; at += 64) __builtin_prefetch(next + at);
      }
      const void* row = row_pointer(points, ids[j]);
      values[j] = points.dtype == Dtype::f32   ? value_of<WIDTH>(metric, query, static_cast<const float*>(row), d)
                  : points.dtype == Dtype::f64 ? value_of<WIDTH>(metric, query, static_cast<const double*>(row), d)
                                               : value_of<WIDTH>(metric, query, static_cast<const Bfloat16*>(row), d);
    }
    return;
  }
  std::vector<double> row(static_cast<std::size_t>(d));
  for (std::int64_t j = 0; j < count; ++j) {
    load_row(points, ids[j], row.data());
    if (!plain) remove_mean(row.data(), d);
    values[j] = value_of<WIDTH>(metric, query, row.data(), d);
  }
}

}  // namespace
}  // namespace tonari
