// Compares queries with the points of a leaf, and keeps the k best of each; both traversals use this in a leaf.
//
// A run is 16 points. QUERIES queries are compared with RUNS runs at a time; their sums stay in registers, so that runs
// which are loaded once serve all of these queries. Points within a query's threshold get their exact value, one
// register of them at a time, and are offered to its list.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "core/room.hpp"
#include "core/rows.hpp"
#include "kdtree/children.hpp"
#include "kdtree/nearest.hpp"
#include "kdtree/reach.hpp"

namespace tonari {
namespace {

// A query while it is searched in the tree.
template <class T>
struct TreeQuery {
  const T* values = nullptr;
  std::byte* list = nullptr;  // the k best so far
  std::int64_t self = -1;     // the point that it must not find
  T threshold = -1;           // a point or box with a larger sum cannot be an answer
};

template <class STEP, class T>
class LeafScan {
  static constexpr int W = kTreeWidth;
  static constexpr std::int64_t kManyColumns = 12;
  using F = Vec<T, W>;

 public:
  using Query = TreeQuery<T>;
  // The most runs, or queries, whose sums fit into half of the registers.
  static constexpr int kMost = std::clamp(Target::registers / 2 * kRegisterLanes<T> / W, 2, 4);

  explicit LeafScan(const TreeTask& task)
      : task_(task),
        tree_(*task.tree),
        d_(tree_.d),
        nearest_(task),
        reach_(task.metric, d_),
        exact_query_(exact_room_.get(d_)) {}

  std::int64_t list_bytes() const { return nearest_.bytes(); }

  // Begins the query of a row: loads its d elements into `values`, and clears `list`, which has list_bytes() bytes.
  Query begin(std::int64_t row, T* values, std::byte* list) {
    load_row(task_.queries, row, exact_query_);
    exact_of_ = nullptr;
    for (std::int64_t i = 0; i < d_; ++i) values[i] = static_cast<T>(exact_query_[i]);
    nearest_.use(list);
    nearest_.clear();
    return {values, list, task_.self_ids != nullptr ? task_.self_ids[row] : -1, nearest_.reach(reach_)};
  }

  template <int QUERIES>
  void scan(std::int64_t leaf, Query* const (&queries)[QUERIES]) {
    // The number of runs that are compared together: many for one query; for several, as many as fit into registers.
    constexpr int most = QUERIES == 1 ? kMost : kRegisterLanes<T> < W ? 1 : 2;
    const std::int64_t begin = tree_.begins[leaf], count = tree_.begins[leaf + 1] - begin;
    const T* x = static_cast<const T*>(tree_.rows) + leaf * d_ * tree_.capacity;
    for (std::int64_t p = 0; p < count;) {
      // Without a threshold all points pass, so only a few points are taken, which determine a threshold for the next
      // ones.
      bool blind = false;
      for (const Query* query : queries) blind |= query->threshold == std::numeric_limits<T>::infinity();
      const auto runs = blind ? 1 : std::min<std::int64_t>(most, (count - p + W - 1) / W);
      compare<QUERIES, most>(runs, queries, count - p, x + p, begin + p);
      p += runs * W;
    }
  }

  // Writes the answer of a row of the queries, which may change the order of its list.
  void write(const Query& query, std::int64_t row) {
    nearest_.use(query.list);
    nearest_.write(row);
  }

 private:
  template <int QUERIES, int RUNS>
  void compare(std::int64_t runs, Query* const (&queries)[QUERIES], std::int64_t left, const T* x, std::int64_t place) {
    if constexpr (RUNS > 1) {
      if (runs < RUNS) return compare<QUERIES, RUNS - 1>(runs, queries, left, x, place);
    }
    std::uint64_t passed[QUERIES];
    passing<QUERIES, RUNS>(queries, x, passed);
    const std::uint64_t present = left < 64 ? (std::uint64_t{1} << left) - 1 : ~std::uint64_t{0};
    for (int q = 0; q < QUERIES; ++q) {
      if ((passed[q] & present) != 0) take(*queries[q], passed[q] & present, x, place);
    }
  }

  // Bits of the points, among RUNS * 16, that pass the threshold of each query.
  template <int QUERIES, int RUNS>
  void passing(Query* const (&queries)[QUERIES], const T* x, std::uint64_t (&passed)[QUERIES]) const {
    F sums[QUERIES][RUNS];
    const T* values[QUERIES];
    for (int q = 0; q < QUERIES; ++q) {
      values[q] = queries[q]->values;
      for (int r = 0; r < RUNS; ++r) sums[q][r] = T{0};
    }
    // Sums only grow, and after half of the columns they often exceed the threshold already.
    const std::int64_t half = d_ < kManyColumns ? d_ : (d_ + 1) / 2;
    for (std::int64_t i = 0, end = half;; end = d_) {
      for (; i < end; ++i, x += tree_.capacity) {
        for (int q = 0; q < QUERIES; ++q) {
          const F value = values[q][i];
          for (int r = 0; r < RUNS; ++r) sums[q][r] = Columns<STEP>::score(sums[q][r], value - F::load(x + r * W));
        }
      }
      std::uint64_t any = 0;
      for (int q = 0; q < QUERIES; ++q) {
        const F threshold = queries[q]->threshold;
        passed[q] = 0;
        for (int r = 0; r < RUNS; ++r) passed[q] |= std::uint64_t{bits(sums[q][r] <= threshold)} << (r * W);
        any |= passed[q];
      }
      if (any == 0 || end == d_) return;
    }
  }

  // Offers the points that passed, with their exact values.
  void take(Query& query, std::uint64_t passed, const T* x, std::int64_t place) {
    if (exact_of_ != &query) {  // the conversion is exact: queries of a float32 tree are float32
      for (std::int64_t i = 0; i < d_; ++i) exact_query_[i] = static_cast<double>(query.values[i]);
      exact_of_ = &query;
    }
    nearest_.use(query.list);
    constexpr int width = kRegisterLanes<double>;
    constexpr std::uint64_t run = (std::uint64_t{1} << width) - 1;
    do {
      const int first = std::countr_zero(passed) / width * width;
      double sums[width];
      exact_columns<STEP>(exact_query_, x + first, tree_.capacity, d_, sums);
      nearest_.offer(sums, passed >> first & run, place + first, query.self);
      passed &= ~(run << first);
    } while (passed != 0);
    query.threshold = nearest_.reach(reach_);
  }

  const TreeTask& task_;
  const TreeView& tree_;
  const std::int64_t d_;
  Nearest nearest_;
  const Reach<T> reach_;
  Room<double> exact_room_;
  double* const exact_query_;
  const Query* exact_of_ = nullptr;  // the query whose float64 values are in exact_query_
};

}  // namespace
}  // namespace tonari
