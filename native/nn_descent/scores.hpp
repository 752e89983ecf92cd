// Scores in float32: enough to see which points cannot be among the best of a row.
//
//   sqeuclidean, euclidean   sum of (q - x)^2        elementwise   as they are, or less (metrics.hpp, `scored`)
//   cosine, correlation      -<q', x> f - g e        q' = q / |q|, less its mean; f, e: point_terms
//   inner_product            -<q, x> - g |q| e       e = |x|
//
// f is 1 / |x|, less its mean, and e the norm that rounding is in proportion to, times f; g is 4 gamma. A sum of d
// rounded terms, none of them negative, is off by a share of at most gamma = (d / 4 + 32) 2^-24, as there are 4 lanes
// or more, and a product by at most gamma |q'| |x|. `limit` and g leave room for that, for the rounding of the terms
// themselves and of the returned value. Scores that are no number, since float32 cannot hold them, pass every limit.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <limits>

#include "core/room.hpp"
#include "core/row_values.hpp"
#include "exact/refine_tile.hpp"
#include "nn_descent/round.hpp"

namespace tonari {
namespace {

template <int WIDTH>
struct FloatRun;
template <>
struct FloatRun<4> {
  typedef float F __attribute__((vector_size(16)));
};
template <>
struct FloatRun<8> {
  typedef float F __attribute__((vector_size(32)));
};
template <>
struct FloatRun<16> {
  typedef float F __attribute__((vector_size(64)));
};

// WIDTH stored values as float32.
template <int WIDTH, class T>
typename FloatRun<WIDTH>::F load_floats(const T* p) {
  using F = typename FloatRun<WIDTH>::F;
  if constexpr (std::is_same_v<T, float>) {
    F run;
    std::memcpy(&run, p, sizeof run);
    return run;
  }
#if defined(__AVX512F__)
  if constexpr (WIDTH == 16 && sizeof(T) == 1) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(std::is_signed_v<T> ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
  }
  if constexpr (WIDTH == 16 && sizeof(T) == 2) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    if constexpr (std::is_same_v<T, Float16>) return _mm512_cvtph_ps(halves);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
#endif
#if defined(__AVX2__) && defined(__F16C__)
  if constexpr (WIDTH == 8 && sizeof(T) == 1) {
    const __m128i bytes = _mm_loadu_si64(p);
    return _mm256_cvtepi32_ps(std::is_signed_v<T> ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
  }
  if constexpr (WIDTH == 8 && sizeof(T) == 2) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    if constexpr (std::is_same_v<T, Float16>) return _mm256_cvtph_ps(halves);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
#endif
  F run;
  for (int j = 0; j < WIDTH; ++j) run[j] = to_value<float>(p[j]);
  return run;
}

// What one register of columns adds; zeros, with which rows are filled up, add nothing.
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
    if constexpr (TERM::maximum) return a > b ? a : b;
    else return a + b;
  }
};

// The lanes of a register in one, by halves.
template <class SCORE, class F>
inline float joined(F run) {
  if constexpr (sizeof(F) == 64) {
    return joined<SCORE>(SCORE::join(__builtin_shufflevector(run, run, 0, 1, 2, 3, 4, 5, 6, 7),
                                     __builtin_shufflevector(run, run, 8, 9, 10, 11, 12, 13, 14, 15)));
  } else if constexpr (sizeof(F) == 32) {
    return joined<SCORE>(SCORE::join(__builtin_shufflevector(run, run, 0, 1, 2, 3),
                                     __builtin_shufflevector(run, run, 4, 5, 6, 7)));
  } else {
    run = SCORE::join(run, __builtin_shufflevector(run, run, 2, 3, 0, 1));
    return SCORE::join(run, __builtin_shufflevector(run, run, 1, 0, 3, 2))[0];
  }
}

// q is filled up with zeros to whole registers.
template <class SCORE, int WIDTH, class T>
inline float score_of(const float* q, const T* x, std::int64_t d) {
  using F = typename FloatRun<WIDTH>::F;
  F sum = {}, other = {};
  std::int64_t i = 0;
  for (; i + 2 * WIDTH <= d; i += 2 * WIDTH) {
    sum = SCORE::add(sum, load_floats<WIDTH>(q + i), load_floats<WIDTH>(x + i));
    other = SCORE::add(other, load_floats<WIDTH>(q + i + WIDTH), load_floats<WIDTH>(x + i + WIDTH));
  }
  for (; i < d; i += WIDTH) {
    if (i + WIDTH <= d) {
      sum = SCORE::add(sum, load_floats<WIDTH>(q + i), load_floats<WIDTH>(x + i));
    } else {
      T end[WIDTH] = {};
      std::memcpy(end, x + i, static_cast<std::size_t>(d - i) * sizeof(T));
      sum = SCORE::add(sum, load_floats<WIDTH>(q + i), load_floats<WIDTH>(end));
    }
  }
  return joined<SCORE>(SCORE::join(sum, other));
}

// Asks for rows some time before they are read.
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
  static constexpr std::int64_t kMost = 1024;  // the rest of a longer row comes by itself

  const char* data_;
  std::int64_t row_, bytes_;
};

// Scores of one query after the other; not for float64.
template <int WIDTH>
class Scores {
 public:
  explicit Scores(const DescentTask& task)
      : task_(task),
        ahead_(task.points),
        gamma_((static_cast<double>(task.points.d) / 4 + 32) * 0x1p-24),
        tiny_(static_cast<double>(task.points.d + 8) * 0x1p-148) {
    const std::int64_t padded = (task.points.d + WIDTH - 1) / WIDTH * WIDTH;
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

  // Above this no score is of a point whose key is `worst` or less.
  float limit(double worst) const {
    constexpr float none = std::numeric_limits<float>::infinity();
    if (!(std::fabs(worst) <= std::numeric_limits<float>::max()) || gamma_ > 0.125) return none;
    const double reach = worst + std::fabs(worst) * 0x1p-23 + 0x1p-148;  // what may be rounded to it
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
      const bool held = norm_ * terms[1] < 1e30f;  // else sums may overflow on their way
      scores[j] = held ? -scores[j] * terms[0] - slack * terms[1] : -std::numeric_limits<float>::infinity();
    }
  }

  template <class SCORE, class T>
  void scan(const std::int32_t* ids, std::int64_t count, float* scores) const {
    const std::int64_t d = task_.points.d;
    const T* data = static_cast<const T*>(task_.points.data);
    for (std::int64_t j = 0; j < count; ++j) {
      if (j + Ahead::kRows < count) ahead_(ids[j + Ahead::kRows]);
      scores[j] = score_of<SCORE, WIDTH>(query_, data + ids[j] * d, d);
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
