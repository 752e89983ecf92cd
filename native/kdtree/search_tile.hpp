// The search through a tree, written once for every instruction set (simd/vec.hpp). Internal linkage throughout: each
// instruction set compiles its own copy.
#pragma once

#include <bit>
#include <limits>

#include "exact/refine_tile.hpp"
#include "kdtree/nearest.hpp"
#include "kdtree/reach.hpp"
#include "kdtree/search.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

// What one column adds: a square, or |t| (`in_trees` of metrics.hpp). Bounds of boxes are rounded in the same way
// everywhere, so that every machine visits the same leaves; scores of points may be fused, since exact values follow.
template <class STEP>
struct Columns {
  template <class F> static F bound(F sum, F t) {
    if constexpr (std::is_same_v<STEP, SquareStep>) return sum + t * t;
    else if constexpr (STEP::maximum) return max(sum, abs(t));
    else return sum + abs(t);
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
  for (int half = kLanes / 2, lanes = used; half > 0; half /= 2) {  // lanes without a column would only add zero
    for (int i = 0; i + half < lanes; ++i) sums[i] = STEP::join(sums[i], sums[i + half]);
    lanes = lanes < half ? lanes : half;
  }
  sums[0].store(values);
}

template <class STEP, class T, class NEAREST>
class TreeWalk {
  static constexpr int W = kTreeWidth;
  using F = Vec<T, W>;
  // Bounds of a node's children as integers, which have the same order.
  using Key = Integer<sizeof(T)>;
  using K = Vec<Key, W>;
  static constexpr Key kDone = std::numeric_limits<Key>::max();                  // visited, or no child
  static constexpr int kMostRuns = std::clamp(8 * kRegisterLanes<T> / W, 2, 4);  // runs of points, in 8 registers
  static constexpr int kLevels = 16;                                             // 16^16 leaves
  static constexpr std::int64_t kManyColumns = 12;

 public:
  TreeWalk(const TreeTask& task, NEAREST& nearest)
      : task_(task),
        tree_(*task.tree),
        d_(tree_.d),
        nearest_(nearest),
        reach_(task.metric, d_),
        query_(query_room_.get(d_)),
        exact_query_(exact_room_.get(d_)),
        root_(takes_root(task.metric)) {}

  std::int64_t run(std::int64_t begin, std::int64_t end, std::int64_t budget, TreeVisits& visits) {
    const TreeVisits before = visits;
    while (begin < end) {
      search(task_.order != nullptr ? task_.order[begin] : begin, visits);
      ++begin;
      const std::int64_t values = visits.points - before.points + 2 * W * (visits.nodes - before.nodes);
      if (values * d_ > budget) break;
    }
    return begin;
  }

 private:
  void search(std::int64_t row, TreeVisits& visits) {
    load_row(task_.queries, row, exact_query_);
    for (std::int64_t i = 0; i < d_; ++i) query_[i] = static_cast<T>(exact_query_[i]);
    self_ = task_.self_ids != nullptr ? task_.self_ids[row] : -1;
    nearest_.clear();
    set_threshold();
    walk(visits);
    write(row);
  }

  void walk(TreeVisits& visits) {
    const int top = static_cast<int>(tree_.boxes.size()) - 1;
    int level = top;
    open(top, 0, visits);
    for (;;) {
      const auto keys = K::load(keys_[level]);
      const Key nearest = fold(keys, [](auto a, auto b) { return min(a, b); });
      if (nearest > limit_) {
        if (level++ == top) return;
        continue;
      }
      const int lane = std::countr_zero(bits(keys == nearest));
      choose(K::Truth::of(1u << lane), K(kDone), keys).store(keys_[level]);
      const std::int64_t child = nodes_[level] * W + lane;
      if (level == 0) {
        scan(child, visits);
      } else {
        open(--level, child, visits);
      }
    }
  }

  // Compares the query with the children of a node.
  void open(int level, std::int64_t node, TreeVisits& visits) {
    ++visits.nodes;
    const T* box = static_cast<const T*>(tree_.boxes[static_cast<std::size_t>(level)]) + node * d_ * 2 * W;
    const F lowest = F::load(box);
    F sum = T{0};
    for (std::int64_t i = 0; i < d_; ++i, box += 2 * W) {
      const F q = query_[i];
      const F nearest = min(max(q, F::load(box)), F::load(box + W));
      sum = Columns<STEP>::bound(sum, nearest - q);
    }
    nodes_[level] = node;
    choose(lowest == std::numeric_limits<T>::infinity(), K(kDone), as<Key>(sum)).store(keys_[level]);
  }

  void scan(std::int64_t leaf, TreeVisits& visits) {
    const std::int64_t begin = tree_.begins[leaf], count = tree_.begins[leaf + 1] - begin;
    ++visits.leaves;
    visits.points += count;
    const T* x = static_cast<const T*>(tree_.rows) + leaf * d_ * tree_.capacity;
    for (std::int64_t p = 0; p < count;) {
      const std::int64_t left = count - p;
      // Without a threshold all points pass, so only a few are taken, which set one for the next.
      if (left <= W || threshold_ == std::numeric_limits<T>::infinity()) {
        take(passing<1>(x + p), left, x + p, begin + p);
        p += W;
      } else if (left <= 2 * W || kMostRuns < 4) {
        take(passing<2>(x + p), left, x + p, begin + p);
        p += 2 * W;
      } else if (left <= 3 * W) {
        take(passing<3>(x + p), left, x + p, begin + p);
        p += 3 * W;
      } else {
        take(passing<4>(x + p), left, x + p, begin + p);
        p += 4 * W;
      }
    }
  }

  // Which of RUNS * 16 points the threshold lets through, as bits.
  template <int RUNS>
  std::uint64_t passing(const T* x) const {
    F sums[RUNS];
    for (int r = 0; r < RUNS; ++r) sums[r] = T{0};
    const F threshold = threshold_;
    std::uint64_t passed = 0;
    const auto columns = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i, x += tree_.capacity) {
        const F q = query_[i];
        for (int r = 0; r < RUNS; ++r) sums[r] = Columns<STEP>::score(sums[r], q - F::load(x + r * W));
      }
      passed = 0;
      for (int r = 0; r < RUNS; ++r) passed |= std::uint64_t{bits(sums[r] <= threshold)} << (r * W);
      return passed;
    };
    const std::int64_t half = d_ < kManyColumns ? d_ : (d_ + 1) / 2;  // sums only grow; half of one is often too large
    if (columns(0, half) != 0 && half < d_) columns(half, d_);
    return passed;
  }

  // Offers the points that passed, with their exact values. `left` points remain in the leaf.
  void take(std::uint64_t passed, std::int64_t left, const T* x, std::int64_t place) {
    if (left < 64) passed &= (std::uint64_t{1} << left) - 1;
    if (passed == 0) return;
    constexpr int width = kRegisterLanes<double>;
    constexpr std::uint64_t run = (std::uint64_t{1} << width) - 1;
    do {
      const int first = std::countr_zero(passed) / width * width;
      double values[width];
      exact_columns<STEP>(exact_query_, x + first, tree_.capacity, d_, values);
      for (std::uint64_t bits = passed >> first & run; bits != 0; bits &= bits - 1) {
        const int lane = std::countr_zero(bits);
        const std::int64_t id = id_at(place + first + lane);
        if (id != self_) nearest_.offer(root_ ? std::sqrt(values[lane]) : values[lane], id);
      }
      passed &= ~(run << first);
    } while (passed != 0);
    set_threshold();
  }

  std::int64_t id_at(std::int64_t place) const {
    return tree_.wide_ids ? static_cast<const std::int64_t*>(tree_.ids)[place]
                          : static_cast<const std::int32_t*>(tree_.ids)[place];
  }

  void set_threshold() {
    threshold_ = nearest_.reach(reach_);
    limit_ = std::bit_cast<Key>(threshold_);
  }

  void write(std::int64_t row) {
    const std::int64_t at = row * task_.k;
    auto write_values = [&](auto* values) {
      if (tree_.wide_ids) {
        nearest_.write(values + at, static_cast<std::int64_t*>(task_.indices) + at);
      } else {
        nearest_.write(values + at, static_cast<std::int32_t*>(task_.indices) + at);
      }
    };
    if (task_.double_output) {
      write_values(static_cast<double*>(task_.distances));
    } else {
      write_values(static_cast<float*>(task_.distances));
    }
  }

  const TreeTask& task_;
  const TreeView& tree_;
  const std::int64_t d_;
  NEAREST& nearest_;
  const Reach<T> reach_;
  Room<T> query_room_;
  Room<double> exact_room_;
  T* const query_;
  double* const exact_query_;
  const bool root_;  // values are square roots of sums

  std::int64_t self_ = -1;
  T threshold_ = 0;  // a point with a larger sum cannot be an answer
  Key limit_ = 0;    // the same as an integer
  alignas(64) Key keys_[kLevels][W];
  std::int64_t nodes_[kLevels];
};

template <class STEP, class T>
std::int64_t tree_search_by(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                            TreeVisits& visits) {
  if (task.double_output || task.tree->wide_ids || task.k > NearestWords::kMost) {
    NearestHeap nearest(task.k, task.double_output);
    return TreeWalk<STEP, T, NearestHeap>(task, nearest).run(begin, end, budget, visits);
  }
  NearestWords nearest(task.k);
  return TreeWalk<STEP, T, NearestWords>(task, nearest).run(begin, end, budget, visits);
}

inline std::int64_t tree_search_tile(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                                     TreeVisits& visits) {
  const auto by = [&]<class STEP>(STEP) {
    return task.tree->double_rows ? tree_search_by<STEP, double>(task, begin, end, budget, visits)
                                  : tree_search_by<STEP, float>(task, begin, end, budget, visits);
  };
  if (!is_elementwise(task.metric)) return by(SquareStep{});
  return with_term(task.metric, [&](auto term) {
    if constexpr (term.in_trees) return by(TermStep<decltype(term)>{});
    else return begin;  // not reached: bind_kdtree_search.cpp refuses such metrics
  });
}

}  // namespace
}  // namespace tonari
