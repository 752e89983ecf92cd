// Sums in the defined order: the 16 lanes are a vector of 16 float64, in as many registers as that takes.
// Internal linkage throughout: each instruction set compiles its own copy.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/row_values.hpp"
#include "exact/refine.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

// The term that an element adds to its lane, and the operation that combines lanes.
struct SumStep {
  template <class T> static T join(T a, T b) { return a + b; }
};
struct SquareStep : SumStep {
  template <class T> static T apply(T sum, T q, T x) { return sum + (q - x) * (q - x); }
};
struct ProductStep : SumStep {
  template <class T> static T apply(T sum, T q, T x) { return sum + q * x; }
};
// The step for rows divided by their norms.
struct ChordStep : SumStep {
  double query_inverse, point_inverse;  // 1 / |q| and 1 / |x|
  template <class T> T apply(T sum, T q, T x) const {
    const T t = q * T(query_inverse) - x * T(point_inverse);
    return sum + t * t;
  }
};
// The step for the struct of an elementwise metric.
template <class TERM>
struct TermStep {
  static constexpr bool maximum = TERM::maximum;
  template <class T> static T of_distance(T t) { return TERM::of_distance(t); }
  template <class T> static T apply(T sum, T q, T x) { return join(sum, TERM::term(q, x)); }
  template <class T> static T join(T a, T b) {
    if constexpr (TERM::maximum) return max(b, a);
    else return a + b;
  }
};

// The last `count` < 16 elements of a row, then zeros.
template <class T>
inline Vec<double, kLanes> load_end(const T* from, std::int64_t count) {
  constexpr int width = kRegisterLanes<T>;
  alignas(64) T end[kLanes] = {};
  if constexpr (sizeof(T) < sizeof(float)) {
    for (std::int64_t j = 0; j < count; ++j) end[j] = from[j];
  } else {  // in registers, since a load would wait long for several smaller stores
    for (int j = 0; j < kLanes && j < count; j += width) {
      Register<T>::load_first(from + j, std::min<std::int64_t>(count - j, width)).store(end + j);
    }
  }
  return Vec<double, kLanes>::load(end);
}

// Lane j sums elements j, j + 16, ...; the ends of x and q are padded with zeros, which change no sum. Then halves of
// the lanes are combined: 16 -> 8 -> 4 -> 2 -> 1.
template <class STEP, class T>
inline double reduce(const double* q, const T* x, std::int64_t d, const STEP& step = {}) {
  using Lanes = Vec<double, kLanes>;
  Lanes sums = 0.0;
  std::int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes) sums = step.apply(sums, Lanes::load(q + i), Lanes::load(x + i));
  if (i < d) sums = step.apply(sums, Lanes::load(q + i), load_end(x + i, d - i));
  return fold(sums, [](auto a, auto b) { return STEP::join(a, b); });
}

// S(q x) and S(x x), in one pass over the point.
struct AngularSums {
  double product, square;
};
template <class T>
inline AngularSums angular_sums(const double* q, const T* x, std::int64_t d) {
  using Lanes = Vec<double, kLanes>;
  Lanes products = 0.0, squares = 0.0;
  const auto add = [&](Lanes asked, Lanes values) {
    products = products + asked * values;
    squares = squares + values * values;
  };
  std::int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes) add(Lanes::load(q + i), Lanes::load(x + i));
  if (i < d) add(Lanes::load(q + i), load_end(x + i, d - i));
  const auto join = [](auto a, auto b) { return a + b; };
  return {fold(products, join), fold(squares, join)};
}

// Computes the value of an angular metric from its sums. If the cosine is above 1/2, 1 - cosine would lose the digits
// of small values; half the squared chord of the rows of length 1 keeps them. A chord is 0 if it is so short that it
// may consist of the rounding errors of parallel rows (docs/exactness.md).
template <class T>
inline double angular_distance(const AngularSums& sums, const ExactQuery& query, const T* x, std::int64_t d) {
  const double norm = std::sqrt(sums.square);
  if (query.norm == 0 || norm == 0) return 1.0;
  const double cosine = sums.product / (query.norm * norm);
  if (!(cosine > 0.5)) return std::min(1.0 - cosine, 2.0);
  const ChordStep step{{}, 1.0 / query.norm, 1.0 / norm};
  const double square = reduce(query.row.data(), x, d, step), shortest = static_cast<double>(d + 192) * 0x1p-57;
  return square <= shortest * shortest ? 0.0 : std::min(square / 2, 0.5);
}

template <class T>
double value_of(Metric metric, const ExactQuery& query, const T* x, std::int64_t d) {
  const double* q = query.row.data();
  switch (family_of(metric)) {
    case Family::squares: {
      const double square = reduce<SquareStep>(q, x, d);
      return takes_root(metric) ? std::sqrt(square) : square;
    }
    case Family::products: return reduce<ProductStep>(q, x, d);
    case Family::angles: return angular_distance(angular_sums(q, x, d), query, x, d);
    case Family::terms: break;
  }
  return with_term(metric, [&](auto term) { return reduce<TermStep<decltype(term)>>(q, x, d); });
}

// Rows are scattered in memory, so a later row (if rows are long, the next one) is prefetched while one is summed.
template <class T>
void values_of_rows(Metric metric, const ExactQuery& query, const RowsView& points, const std::int64_t* ids,
                    std::int64_t count, double* values) {
  constexpr std::int64_t held = 8192;
  const std::int64_t d = points.d, bytes = d * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t ahead = bytes * 8 <= held ? 8 : bytes * 2 <= held ? held / bytes : 1;
  for (std::int64_t j = 0; j < count; ++j) {
    if (j + ahead < count) {
      const char* next = static_cast<const char*>(row_pointer(points, ids[j + ahead]));
      for (std::int64_t at = 0; at < bytes && at < held / 2; at += 64) __builtin_prefetch(next + at);
    }
    values[j] = value_of(metric, query, static_cast<const T*>(row_pointer(points, ids[j])), d);
  }
}

inline void exact_values_tile(Metric metric, const ExactQuery& query, const RowsView& points, const std::int64_t* ids,
                              std::int64_t count, double* values) {
  const std::int64_t d = points.d;
  if (!removes_mean(metric)) {
    with_type(points.dtype,
              [&](auto stored) { values_of_rows<decltype(stored)>(metric, query, points, ids, count, values); });
    return;
  }
  std::vector<double> row(static_cast<std::size_t>(d));
  for (std::int64_t j = 0; j < count; ++j) {
    load_row(points, ids[j], row.data());
    remove_mean(row.data(), d);
    values[j] = value_of(metric, query, row.data(), d);
  }
}

// Sums up to kFewColumns elements, one in each lane; the other lanes are zero, so only halves with elements are
// combined.
template <class STEP>
void reduce_columns(const double* q, const double* columns, std::int64_t stride, std::int64_t d, std::int64_t count,
                    double* values) {
  using Lanes = Vec<double, kLanes>;
  const Lanes zero = 0.0;
  for (std::int64_t j = 0; j < count; j += kLanes) {
    Lanes sums[kFewColumns];
    for (std::int64_t c = 0; c < d; ++c) {
      const Lanes asked = q[c];
      sums[c] = STEP::apply(zero, asked, Lanes::load(columns + c * stride + j));
    }
    for (std::int64_t half = kFewColumns / 2; half > 0; half /= 2) {
      for (std::int64_t c = 0; c < half && c + half < d; ++c) sums[c] = STEP::join(sums[c], sums[c + half]);
    }
    sums[0].store(values + j);
  }
}

inline void column_values_tile(Metric metric, const ExactQuery& query, const double* columns, std::int64_t stride,
                               std::int64_t d, std::int64_t count, double* values) {
  const double* q = query.row.data();
  switch (family_of(metric)) {
    case Family::squares:
      reduce_columns<SquareStep>(q, columns, stride, d, count, values);
      if (!takes_root(metric)) return;
      for (std::int64_t j = 0; j < count; ++j) values[j] = std::sqrt(values[j]);
      return;
    case Family::products: return reduce_columns<ProductStep>(q, columns, stride, d, count, values);
    case Family::angles: return;
    case Family::terms: break;
  }
  with_term(metric, [&](auto term) { reduce_columns<TermStep<decltype(term)>>(q, columns, stride, d, count, values); });
}

// Loads the last 1 to V::lanes elements of a row, then zeros. A full register is read without a mask, because
// processors do not prefetch after masked loads.
template <class V>
inline V load_float_end(const float* from, std::int64_t count) {
  if (count == V::lanes) return V::load(from);
  if constexpr (V::whole) {
    return V::load_first(from, count);
  } else {
    using Half = typename V::Half;
    if (count <= Half::lanes) return V(load_float_end<Half>(from, count), Half(0.0F));
    return V(Half::load(from), load_float_end<Half>(from + Half::lanes, count - Half::lanes));
  }
}

// Four vectors in one, block of four lanes by block: the sums of their lanes, [a0 + ... + a3, b0 + ... + b3, ...]. It takes
// half of the instructions of four folds.
template <int N, int... I>
inline Vec<float, N> fold_blocks(Vec<float, N> a, Vec<float, N> b, Vec<float, N> c, Vec<float, N> d,
                                 std::integer_sequence<int, I...>) {
  using Whole = Vec<float, N>;
  const auto alternate = [](Whole x, Whole y) {  // [x0 + x2, y0 + y2, x1 + x3, y1 + y3]
    const auto low = __builtin_shufflevector(x.parts.raw, y.parts.raw, (I / 4 * 4 + I % 4 / 2 + I % 2 * N)...);
    const auto high = __builtin_shufflevector(x.parts.raw, y.parts.raw, (I / 4 * 4 + 2 + I % 4 / 2 + I % 2 * N)...);
    return low + high;
  };
  const auto ab = alternate(a, b), cd = alternate(c, d);
  const auto low = __builtin_shufflevector(ab, cd, (I / 4 * 4 + I % 2 + I % 4 / 2 * N)...);
  const auto high = __builtin_shufflevector(ab, cd, (I / 4 * 4 + 2 + I % 2 + I % 4 / 2 * N)...);
  return Whole(low + high);
}
template <int N, int... I>
inline Vec<float, N / 2> fold_in_half(Vec<float, N> a, std::integer_sequence<int, I...>) {
  return Vec<float, N / 2>(__builtin_shufflevector(a.parts.raw, a.parts.raw, I...) +
                           __builtin_shufflevector(a.parts.raw, a.parts.raw, (N / 2 + I)...));
}
template <int N>
inline void fold_four(const Vec<float, N> (&sums)[4], float* out) {
  const auto blocks = fold_blocks(sums[0], sums[1], sums[2], sums[3], std::make_integer_sequence<int, N>{});
  const auto halves = fold_in_half(blocks, std::make_integer_sequence<int, N / 2>{});
  fold_in_half(halves, std::make_integer_sequence<int, N / 4>{}).store(out);
}

// Q queries share the loaded elements of P points, and the points those of the queries.
template <int Q, int P>
void estimate_squares(const float* queries, const float* points, std::int64_t d, std::int64_t count, float* estimates,
                      std::int64_t stride) {
  using Lanes = Vec<float, kLanes>;
  // elements to prefetch ahead, since loads across cache lines wait for the second-level cache
  constexpr std::int64_t ahead = 512;
  const std::int64_t width = padded(d);
  for (std::int64_t j = 0; j < count; j += P) {
    const float* const x = points + j * d;
    Lanes sums[Q][P];
    for (auto& row : sums) std::fill_n(row, P, Lanes(0.0F));
    const auto add = [&](std::int64_t i, auto&& load) {
      Lanes values[P];
      for (int p = 0; p < P; ++p) values[p] = load(x + p * d + i);
      for (int q = 0; q < Q; ++q) {
        const Lanes asked = Lanes::load(queries + q * width + i);
        for (int p = 0; p < P; ++p) {
          const Lanes apart = asked - values[p];
          sums[q][p] = fma(apart, apart, sums[q][p]);
        }
      }
    };
    std::int64_t i = 0;
    for (; i + kLanes <= d; i += kLanes) {
      add(i, [](const float* from) {
        __builtin_prefetch(from + ahead);
        return Lanes::load(from);
      });
    }
    if (i < d) add(i, [&](const float* from) { return load_float_end<Lanes>(from, d - i); });
    for (int q = 0; q < Q; ++q) {
      if constexpr (P == 4 && Lanes::whole) {
        fold_four(sums[q], estimates + q * stride + j);
        continue;
      }
      for (int p = 0; p < P; ++p) {
        estimates[q * stride + j + p] = fold(sums[q][p], [](auto a, auto b) { return a + b; });
      }
    }
  }
}

// One query and many points, P at a time.
template <int P>
void estimate_one(const float* query, const float* points, std::int64_t d, std::int64_t count, float* estimates) {
  const std::int64_t whole = count - count % P;
  estimate_squares<1, P>(query, points, d, whole, estimates, 0);
  estimate_squares<1, 1>(query, points + whole * d, d, count - whole, estimates + whole, 0);
}

// For points of few columns, which would fill registers with zeros: the compiler computes several points at once.
template <int D>
void estimate_few_columns(const float* query, const float* points, std::int64_t count, float* estimates) {
  for (std::int64_t j = 0; j < count; ++j) {
    float sum = 0.0F;
    for (int i = 0; i < D; ++i) {
      const float apart = query[i] - points[j * D + i];
      sum += apart * apart;
    }
    estimates[j] = sum;
  }
}

inline void square_estimates_tile(const float* queries, std::int64_t m, const float* points, std::int64_t d,
                                  std::int64_t count, float* estimates, std::int64_t stride) {
  if (d <= 4) {
    constexpr decltype(&estimate_few_columns<1>) few[] = {estimate_few_columns<1>, estimate_few_columns<2>,
                                                          estimate_few_columns<3>, estimate_few_columns<4>};
    for (std::int64_t q = 0; q < m; ++q) few[d - 1](queries + q * padded(d), points, count, estimates + q * stride);
    return;
  }
  constexpr int together = Target::registers >= 32 ? 4 : 2;
  std::int64_t q = 0;
  for (; q + together <= m; q += together) {
    estimate_squares<together, 1>(queries + q * padded(d), points, d, count, estimates + q * stride, stride);
  }
  for (; q < m; ++q) estimate_one<together>(queries + q * padded(d), points, d, count, estimates + q * stride);
}

}  // namespace
}  // namespace tonari
