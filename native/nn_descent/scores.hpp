// Scores in float32, which suffice to rule out points that cannot be among the best of a row.
//
//   sqeuclidean, euclidean   sum of (q - x)^2        elementwise   sums of `scored` terms (metrics.hpp)
//   cosine, correlation      -<q', x> f - g e        q' = q / |q|, less its mean; f, e: point_terms
//   inner_product            -<q, x> - g |q| e       e = |x|
//
// f is 1 / |x|, for correlation of x without its mean; e is f times the norm that rounding errors are proportional to;
// g is 4 gamma. A sum of d rounded terms, none of them negative, has a relative error of at most gamma = (d / 4 + 32)
// 2^-24, since there are at least 4 lanes, and a product an error of at most gamma |q'| |x|. `limit` and g leave room
// for that, and for the rounding of the terms themselves and of the returned value. Scores that are NaN, because
// float32 cannot represent them, pass every limit.
#pragma once

#include <limits>

#include "core/room.hpp"
#include "core/row_values.hpp"
#include "exact/refine_tile.hpp"
#include "nn_descent/round.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

using Floats = Register<float>;

// The terms of a register of columns. Rows are padded with zeros, which add nothing.
struct SquareScore {
  template <class F> static F add(F sum, F q, F x) { return sum + (q - x) * (q - x); }
  template <class F> static F join(F a, F b) { return a + b; }
};
struct ProductScore : SquareScore {
  template <class F> static F add(F sum, F q, F x) { return sum + q * x; }
};
template <class TERM>
struct TermScore {
  template <class F> static F add(F sum, F q, F x) { return join(sum, TERM::scored(q, x)); }
  template <class F> static F join(F a, F b) {
    if constexpr (TERM::maximum) return max(a, b);
    else return a + b;
  }
};

// The last values of a row, fewer than a register holds, then zeros.
template <class T>
inline Floats last_of(const T* x, std::int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    return Floats::load_first(x, count);  // not by a copy to memory, since the load would wait for the stores
  } else {
    T end[Floats::lanes] = {};
    std::memcpy(end, x, static_cast<std::size_t>(count) * sizeof(T));
    return Floats::load(end);
  }
}

// q is padded with zeros to whole registers.
template <class SCORE, class T>
inline float score_of(const float* q, const T* x, std::int64_t d) {
  constexpr int W = Floats::lanes;
  Floats sum = 0.0f, other = 0.0f;
  std::int64_t i = 0;
  for (; i + 2 * W <= d; i += 2 * W) {
    sum = SCORE::add(sum, Floats::load(q + i), Floats::load(x + i));
    other = SCORE::add(other, Floats::load(q + i + W), Floats::load(x + i + W));
  }
  for (; i < d; i += W) {
    sum = SCORE::add(sum, Floats::load(q + i), i + W <= d ? Floats::load(x + i) : last_of(x + i, d - i));
  }
  return fold(SCORE::join(sum, other), [](auto a, auto b) { return SCORE::join(a, b); });
}

// Prefetches rows that will be read soon.
class Ahead {
 public:
  static constexpr std::int64_t kRows = 8;

  explicit Ahead(const RowsView& points)
      : data_(static_cast<const char*>(points.data)),
        row_(points.d * static_cast<std::int64_t>(dtype_size(points.dtype))),
        bytes_(row_ < kMost ? row_ : kMost) {}

  void operator()(std::int64_t id) const {
    const char* row = data_ + id * row_;
    for (std::int64_t at = 0; at < bytes_; at += 64) __builtin_prefetch(row + at);
    __builtin_prefetch(row + bytes_ - 1);
  }

 private:
  static constexpr std::int64_t kMost = 1024;  // the processor prefetches the rest of a longer row itself

  const char* data_;
  std::int64_t row_, bytes_;
};

// Computes scores for one query at a time; not for float64 points.
class Scores {
 public:
  explicit Scores(const DescentTask& task)
      : task_(task),
        ahead_(task.points),
        gamma_((static_cast<double>(task.points.d) / 4 + 32) * 0x1p-24),
        tiny_(static_cast<double>(task.points.d + 8) * 0x1p-148) {
    const std::int64_t padded = (task.points.d + Floats::lanes - 1) / Floats::lanes * Floats::lanes;
    query_ = room_.get(padded);
    for (std::int64_t i = 0; i < padded; ++i) query_[i] = 0;
  }

  void open(const ExactQuery& query) {
    const bool angular = is_angular(task_.metric);
    const double factor = !angular ? 1 : query.norm == 0 ? 0 : 1 / query.norm;
    const double* row = query.row.data();
    double square = 0;
    for (std::int64_t i = 0; i < task_.points.d; ++i) {
      query_[i] = static_cast<float>(angular ? row[i] * factor : row[i]);
      square += row[i] * row[i];
    }
    norm_ = static_cast<float>(angular ? 1 : std::sqrt(square));
  }

  // The largest score of a point whose key is at most `worst`.
  float limit(double worst) const {
    constexpr float none = std::numeric_limits<float>::infinity();
    if (!(std::fabs(worst) <= std::numeric_limits<float>::max()) || gamma_ > 0.125) return none;
    const double reach = worst + std::fabs(worst) * 0x1p-23 + 0x1p-148;  // may be rounded to `worst`
    if (is_angular(task_.metric)) return worst >= 2 ? none : static_cast<float>(reach - 1 + 0x1p-20);
    if (is_product(task_.metric)) {
      return static_cast<float>(reach + std::fabs(reach) * 0x1p-20 + tiny_);
    }
    const double value = takes_root(task_.metric) ? reach * reach : reach;
    return static_cast<float>(value * (1 + 2 * gamma_ + 0x1p-20) + tiny_);
  }

  void operator()(const std::int32_t* ids, std::int64_t count, float* scores) const {
    with_type(task_.points.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (sizeof(T) < sizeof(double)) with_metric<T>(ids, count, scores);
    });
  }

 private:
  template <class T>
  void with_metric(const std::int32_t* ids, std::int64_t count, float* scores) const {
    if (is_euclidean(task_.metric)) return scan<SquareScore, T>(ids, count, scores);
    if (is_elementwise(task_.metric)) {
      return with_term(task_.metric, [&](auto term) { scan<TermScore<decltype(term)>, T>(ids, count, scores); });
    }
    scan<ProductScore, T>(ids, count, scores);
    const float slack = static_cast<float>(4 * gamma_) * norm_;
    for (std::int64_t j = 0; j < count; ++j) {
      const float* terms = task_.terms + 2 * static_cast<std::int64_t>(ids[j]);
      const bool held = norm_ * terms[1] < 1e30f;  // otherwise partial sums may overflow
      scores[j] = held ? -scores[j] * terms[0] - slack * terms[1] : -std::numeric_limits<float>::infinity();
    }
  }

  template <class SCORE, class T>
  void scan(const std::int32_t* ids, std::int64_t count, float* scores) const {
    const std::int64_t d = task_.points.d;
    const T* data = static_cast<const T*>(task_.points.data);
    for (std::int64_t j = 0; j < count; ++j) {
      if (j + Ahead::kRows < count) ahead_(ids[j + Ahead::kRows]);
      scores[j] = score_of<SCORE>(query_, data + ids[j] * d, d);
    }
  }

  const DescentTask& task_;
  const Ahead ahead_;
  const double gamma_, tiny_;
  Room<float> room_;
  float* query_;
  float norm_ = 0;
};

}  // namespace
}  // namespace tonari
