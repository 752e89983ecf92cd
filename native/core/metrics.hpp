// Everything that differs between metrics, in one place for all kernels.
//
// An elementwise metric is the sum, or the maximum, of terms f(q_i, x_i) >= 0 with f(0, 0) = 0. A new one needs a name
// in `Metric`, a struct like those below, and a place in `Elementwise`; every kernel reads the struct.
// src/tonari/metrics has the record of the same name for Python, and docs/exactness.md derives the bounds.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "core/common.hpp"

namespace tonari {

enum class Metric : int {
  sqeuclidean,
  euclidean,
  inner_product,
  cosine,
  correlation,
  l1,
  linf,
  chi2,
  canberra,
  power_half,
  power_three_halves,
  power_three,
  power_four,
};

enum class Family : int {
  squares,   // sum of (q - x)^2, or its root
  products,  // sum of q x; larger is nearer
  angles,    // 1 - S(q x) / (|q| |x|)
  terms,     // elementwise
};

// Internal linkage: each instruction set compiles its own copy.
namespace {

struct TermDefaults {
  static constexpr bool maximum = false;          // the value is the largest term, not the sum of all terms
  static constexpr bool in_trees = false;         // f(q, x) = of_distance(|q - x|): boxes bound it (kdtree/columns.hpp)
  static constexpr double degree = 1;             // f(c q, c x) = c^degree f(q, x)
  static constexpr double underflow = 0x1p-1074;  // the largest error of a term in float64 by underflow
  // largest magnitude of an element for which the bounds below hold
  static constexpr double largest = std::numeric_limits<double>::infinity();
  // Bounds of a term, and of its change when its arguments are rounded:  f(q, x) <= size(q) + size(x),
  // |f(q, x) - f(q, y)| <= stretch * difference(x, y)
  static constexpr double stretch = 1;
  template <class V> static V size(V x) { return abs(x); }
  template <class V> static V difference(V x, V y) { return abs(x - y); }
};

// The members of each struct of a metric. V, here and above, is a vector of simd/vec.hpp, whose abs, sqrt, max and
// choose are found by its type:
//   term      the definition's float64 value, every operation rounded
//   scored    a float32 term of NN-Descent's scores: may be too small at the ends of float32's range, never too large
//   screened  the same for the screen; elements are 0, or from 2^-60 to 2^40 in magnitude
//   whole     the term of two whole numbers, if it is a whole number itself
//   of_distance    the term of two numbers at a distance of t; it ascends with t. For in_trees. If t is infinite it may be
//                  too small, but no less than the term of the largest number

struct L1 : TermDefaults {
  static constexpr Metric metric = Metric::l1;
  static constexpr char name[] = "l1";
  static constexpr bool in_trees = true;
  template <class V> static V of_distance(V t) { return t; }
  template <class V> static V term(V q, V x) { return abs(q - x); }
  template <class V> static V scored(V q, V x) { return abs(q - x); }
  template <class V> static V screened(V q, V x) { return abs(q - x); }
  static int whole(int q, int x) { return std::abs(q - x); }
};

struct Linf : L1 {
  static constexpr Metric metric = Metric::linf;
  static constexpr char name[] = "linf";
  static constexpr bool maximum = true;
};

struct Chi2 : TermDefaults {
  static constexpr Metric metric = Metric::chi2;
  static constexpr char name[] = "chi2";
  static constexpr double underflow = 0x1p-536;  // the quotient enlarges the error of a square that underflows
  static constexpr double stretch = 3;           // |d f / d x| <= 3 for q, x >= 0
  template <class V> static V term(V q, V x) {
    const V t = q - x, weight = q + x;
    return choose(weight == 0.0, 0.0, (t * t) / choose(weight == 0.0, 1.0, weight));
  }
  template <class V> static V scored(V q, V x) {
    const V t = q - x, weight = q + x;
    return t * (t / choose(weight == 0.0f, 1.0f, weight));
  }
  template <class V> static V screened(V q, V x) {
    const V t = q - x;  // 0 / 0 must be 0: the denominator is at least the smallest product of packed values
    return t * t / max(q + x, 0x1p-100f);
  }
};

struct Canberra : TermDefaults {  // f is itself a metric, so difference = f
  static constexpr Metric metric = Metric::canberra;
  static constexpr char name[] = "canberra";
  static constexpr double degree = 0;
  template <class V> static V size(V x) { return choose(x == 0.0, V(0.0), V(1.0)); }
  template <class V> static V difference(V x, V y) { return term(x, y); }
  template <class V> static V term(V q, V x) {
    const V weight = abs(q) + abs(x);
    return abs(q - x) / choose(weight == 0.0, 1.0, weight);
  }
  template <class V> static V scored(V q, V x) {  // 0 or NaN where the weight is infinite
    const V weight = abs(q) + abs(x);
    return abs(q - x) / choose(weight == 0.0f, 1.0f, weight);
  }
  template <class V> static V screened(V q, V x) { return abs(q - x) / max(abs(q) + abs(x), 0x1p-100f); }
};

// |q - x|^p, by multiplications and square roots in one order, each rounded. docs/exactness.md derives the bounds: for
// p > 1 they are those of elements of at most `largest`, which form rows of the usual scale have: convexity is 2^(p - 1),
// rounded up, and stretch p (2 largest)^(p - 1).
template <class POWER>
struct PowerTerms : TermDefaults {
  static constexpr bool in_trees = true;
  static constexpr double largest = 2;
  template <class V> static V size(V x) { return POWER::of_distance(abs(x)) * POWER::convexity; }
  template <class V> static V term(V q, V x) { return POWER::of_distance(abs(q - x)); }
  template <class V> static V scored(V q, V x) { return term(q, x); }
  template <class V> static V screened(V q, V x) { return term(q, x); }
};

struct PowerHalf : PowerTerms<PowerHalf> {  // f is itself a metric, so difference = f
  // A difference may overflow although its root does not: the largest number, which is too small, replaces it.
  static constexpr Metric metric = Metric::power_half;
  static constexpr char name[] = "power:0.5";
  static constexpr double degree = 0.5, convexity = 1, largest = TermDefaults::largest;
  template <class V> static V of_distance(V t) {
    return sqrt(min(t, std::numeric_limits<std::remove_cvref_t<decltype(t[0])>>::max()));
  }
  template <class V> static V difference(V x, V y) { return term(x, y); }
};

struct PowerThreeHalves : PowerTerms<PowerThreeHalves> {
  static constexpr Metric metric = Metric::power_three_halves;
  static constexpr char name[] = "power:1.5";
  static constexpr double degree = 1.5, convexity = 1.414214, stretch = 3;
  template <class V> static V of_distance(V t) { return t * sqrt(t); }
};

struct PowerThree : PowerTerms<PowerThree> {
  static constexpr Metric metric = Metric::power_three;
  static constexpr char name[] = "power:3";
  static constexpr double degree = 3, convexity = 4, stretch = 48;
  template <class V> static V of_distance(V t) { return (t * t) * t; }
};

struct PowerFour : PowerTerms<PowerFour> {
  static constexpr Metric metric = Metric::power_four;
  static constexpr char name[] = "power:4";
  static constexpr double degree = 4, convexity = 8, stretch = 256;
  template <class V> static V of_distance(V t) {
    const V square = t * t;
    return square * square;
  }
};

template <class... TERMS>
struct TermList {
  static constexpr std::size_t count = sizeof...(TERMS);
};
using Elementwise = TermList<L1, Linf, Chi2, Canberra, PowerHalf, PowerThreeHalves, PowerThree, PowerFour>;

template <class FIRST, class... REST, class Visit>
constexpr decltype(auto) visit_term(TermList<FIRST, REST...>, Metric metric, Visit&& visit) {
  if constexpr (sizeof...(REST) > 0) {
    if (metric != FIRST::metric) return visit_term(TermList<REST...>{}, metric, visit);
  }
  return visit(FIRST{});
}

// Calls visit(S{}) with the struct S of an elementwise metric.
template <class Visit>
constexpr decltype(auto) with_term(Metric metric, Visit&& visit) {
  return visit_term(Elementwise{}, metric, visit);
}

constexpr Family family_of(Metric metric) {
  switch (metric) {
    case Metric::sqeuclidean:
    case Metric::euclidean: return Family::squares;
    case Metric::inner_product: return Family::products;
    case Metric::cosine:
    case Metric::correlation: return Family::angles;
    default: return Family::terms;
  }
}
constexpr bool is_euclidean(Metric metric) { return family_of(metric) == Family::squares; }
constexpr bool is_product(Metric metric) { return family_of(metric) == Family::products; }
constexpr bool is_angular(Metric metric) { return family_of(metric) == Family::angles; }
constexpr bool is_elementwise(Metric metric) { return family_of(metric) == Family::terms; }
constexpr bool is_descending(Metric metric) { return is_product(metric); }
constexpr bool takes_root(Metric metric) { return metric == Metric::euclidean; }
constexpr bool removes_mean(Metric metric) { return metric == Metric::correlation; }

// The degree of an elementwise metric.
constexpr double degree_of(Metric metric) {
  return with_term(metric, [](auto term) { return decltype(term)::degree; });
}
constexpr double underflow_of(Metric metric) {
  if (!is_elementwise(metric)) return TermDefaults::underflow;
  return with_term(metric, [](auto term) { return decltype(term)::underflow; });
}
constexpr bool in_trees(Metric metric) {
  if (!is_elementwise(metric)) return is_euclidean(metric);
  return with_term(metric, [](auto term) { return decltype(term)::in_trees; });
}

constexpr int kMetrics = static_cast<int>(Metric::l1) + static_cast<int>(Elementwise::count);

constexpr const char* metric_name(Metric metric) {
  switch (metric) {
    case Metric::sqeuclidean: return "sqeuclidean";
    case Metric::euclidean: return "euclidean";
    case Metric::inner_product: return "inner_product";
    case Metric::cosine: return "cosine";
    case Metric::correlation: return "correlation";
    default: return with_term(metric, [](auto term) -> const char* { return decltype(term)::name; });
  }
}

}  // namespace
}  // namespace tonari
