// The largest possible sum in T of a point of the answer: the threshold for points and for boxes.
//
// Let r be the k-th returned value so far. A point that replaces it has a returned value of at most r, so its float64
// value is at most the next float32 after r, or at most r where values are returned as float64. The factor and `tiny`
// cover the rounding of sums in T and of the threshold itself (docs/kdtree.md, "Exactness").
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/metrics.hpp"

namespace tonari {
namespace {

template <class T>
class Reach {
 public:
  Reach(Metric metric, std::int64_t d) : squared_(takes_root(metric)) {
    constexpr bool single = std::is_same_v<T, float>;
    constexpr double unit = 0x1p-24, unit64 = 0x1p-53, least = single ? 0x1p-149 : 0x1p-1074;
    const double terms = static_cast<double>(d);
    // d + 6 roundings in the sum, and for float32 that of the threshold itself; then those of the float64 value.
    const double n = (single ? (terms + 12) * unit : 0.0) + (3 * terms + 72) * unit64;
    factor_ = n < 0.25 ? 1 + n / (1 - 2 * n) : std::numeric_limits<double>::infinity();
    tiny_ = (terms + 8) * least;  // the largest error of the products by underflow
    constexpr auto largest = static_cast<double>(std::numeric_limits<T>::max());
    most_ = is_elementwise(metric) && degree_of(metric) < 1 ? std::sqrt(largest) / 2 : largest;
  }

  // The threshold for a k-th returned value, which is +infinity while fewer than k points are known.
  T of(double value) const { return static_cast<T>((squared_ ? value * value : value) * factor_ + tiny_); }
  // The threshold if values are returned as float32, from the word of the k-th point; words above that of +infinity
  // mean +infinity.
  T of_single(std::int32_t word) const {
    constexpr std::int32_t largest = 0x7f7fffff;
    return of(static_cast<double>(std::bit_cast<float>(std::min(word, largest) + 1)));
  }

  // The converse: a point with at most this sum has a returned value of at most `value`, a number of the returned type.
  T within(double value) const {
    const double sum = (squared_ ? value * value : value) / factor_ - 2 * tiny_;
    if (!(sum >= 0)) return -1;
    // Not infinity, because nothing follows from a sum that overflows, or that contains the root of a difference that
    // overflows.
    if (sum >= most_) return static_cast<T>(most_);
    const T rounded = static_cast<T>(sum);
    return static_cast<double>(rounded) > sum ? std::nextafter(rounded, T{-1}) : rounded;
  }

 private:
  bool squared_;
  double factor_, tiny_, most_;
};

}  // namespace
}  // namespace tonari
