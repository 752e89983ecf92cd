// Exact values of rows of bytes, computed with integers in less time. Integer sums are the same in any order, and
// float64 represents each exactly, so the values have the bits of the definition. The chord of an angular metric has
// other terms, and is summed in the defined order. Internal linkage throughout.
#pragma once

#include <algorithm>

#include "core/room.hpp"
#include "exact/refine_tile.hpp"
#include "nn_descent/round.hpp"

namespace tonari {
namespace {

class ByteValues {
 public:
  explicit ByteValues(const DescentTask& task)
      : metric_(task.metric), points_(task.points), query_(serves(task) ? room_.get(task.points.d) : nullptr) {}

  static bool serves(const DescentTask& task) {
    constexpr std::int64_t most = 1 << 15;  // columns: sums of 2^16 or less stay below 2^31
    const bool whole = task.points.dtype == Dtype::u8 || task.points.dtype == Dtype::i8;
    if (!whole || task.points.d >= most || removes_mean(task.metric)) return false;
    return !is_elementwise(task.metric) || with_term(task.metric, [](auto term) { return is_whole<decltype(term)>; });
  }

  // `query` must exist until the next call.
  void open(const ExactQuery& query) {
    asked_ = &query;
    for (std::int64_t i = 0; i < points_.d; ++i) {
      query_[i] = static_cast<std::int16_t>(query.row[static_cast<std::size_t>(i)]);
    }
  }

  void operator()(const std::int64_t* ids, std::int64_t count, double* values) const {
    if (points_.dtype == Dtype::u8) return each<std::uint8_t>(ids, count, values);
    each<std::int8_t>(ids, count, values);
  }

 private:
  template <class TERM>
  static constexpr bool is_whole = requires { TERM::whole(0, 0); };

  template <class T>
  void each(const std::int64_t* ids, std::int64_t count, double* values) const {
    const T* data = static_cast<const T*>(points_.data);
    for (std::int64_t j = 0; j < count; ++j) values[j] = value(data + ids[j] * points_.d);
  }

  template <class T>
  double value(const T* x) const {
    const std::int16_t* q = query_;
    const auto d = static_cast<int>(points_.d);
    std::int32_t sum = 0, square = 0;
    switch (family_of(metric_)) {
      case Family::squares:
        for (int i = 0; i < d; ++i) {
          const auto t = static_cast<std::int16_t>(q[i] - x[i]);
          sum += t * t;
        }
        return takes_root(metric_) ? std::sqrt(static_cast<double>(sum)) : sum;
      case Family::terms:
        return with_term(metric_, [&](auto term) {
          if constexpr (is_whole<decltype(term)>) {
            for (int i = 0; i < d; ++i) {
              const int t = term.whole(q[i], x[i]);
              sum = term.maximum ? std::max(sum, t) : sum + t;
            }
          }
          return sum;
        });
      case Family::products:
        for (int i = 0; i < d; ++i) sum += q[i] * x[i];
        return sum;
      case Family::angles: break;
    }
    for (int i = 0; i < d; ++i) {
      sum += q[i] * x[i];
      square += x[i] * x[i];
    }
    return angular_distance({static_cast<double>(sum), static_cast<double>(square)}, *asked_, x, points_.d);
  }

  const Metric metric_;
  const RowsView points_;
  Room<std::int16_t> room_;
  std::int16_t* query_;
  const ExactQuery* asked_ = nullptr;
};

}  // namespace
}  // namespace tonari
