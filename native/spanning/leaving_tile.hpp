// The walk of the edges that leave components, written once for every instruction set (simd/vec.hpp). Internal linkage
// throughout: each instruction set compiles its own copy.
//
// The points of a leaf walk together: those that may have an edge before the first known edge of their component. The
// walk goes from box to box, the nearest child first, and leaves out a child
//
//   - that is farther from the box of these points than the heaviest of the known edges,
//   - all of whose points are in the component of these points,
//   - all of whose points have core distances above the heaviest of the known edges,
//   - or with which all edges are after each of the known edges, by their weights and then by the numbers of their ends.
//
// After the walk of a point, every edge from the point to another component that is not listed weighs at least as much
// as the first known edge of its component. This bound stays valid when components join.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/room.hpp"
#include "kdtree/children.hpp"
#include "kdtree/reach.hpp"
#include "kdtree/tree_types.hpp"
#include "spanning/forest.hpp"

namespace tonari {
namespace {

template <class STEP, class T>
class LeavingWalkOf {
  static constexpr int W = kTreeWidth;
  static constexpr int kLevels = 16;            // 16^16 leaves
  static constexpr std::int32_t kNoLabel = -2;  // no child has this label
  using F = Vec<T, W>;
  using K = ChildKeys<T>;
  using Key = ChildKey<T>;

 public:
  LeavingWalkOf(Forest& forest, const typename Forest::template Below<T>* below)
      : forest_(forest),
        below_(below),
        tree_(*forest.task.tree),
        d_(tree_.d),
        root_(takes_root(forest.task.metric)),
        labels_(forest.labels.data()),
        cores_(forest.cores.data()),
        bounds_(forest.bounds.data()),
        reach_(forest.task.metric, d_),
        low_(values_room_.get(3 * d_)),
        high_(low_ + d_),
        values_(high_ + d_),
        exact_(exact_room_.get(d_)),
        walking_(walking_room_.get(tree_.capacity)) {}

  std::int64_t run(std::int64_t begin, std::int64_t end, std::int64_t budget) {
    read_ = 0;
    while (begin < end) {
      walk_from(begin++);
      if (read_ * d_ > budget) break;
    }
    return begin;
  }

 private:
  // A point that walks; its place, number and component.
  struct Walking {
    std::int64_t place, id;
    std::int32_t label;
  };

  void walk_from(std::int64_t leaf) {
    const std::int64_t begin = tree_.begins[leaf], end = tree_.begins[leaf + 1];
    const T* x = static_cast<const T*>(tree_.rows) + leaf * d_ * tree_.capacity;
    read_ += W;
    count_ = 0;
    own_ = kNoLabel;
    least_id_ = std::numeric_limits<std::int64_t>::max();
    least_core_ = std::numeric_limits<double>::infinity();
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int32_t label = labels_[place];
      const double weight = forest_.weight(label);
      if (cores_[place] > weight || bounds_[place] > weight) continue;
      const std::int64_t id = forest_.id_at(place), at = place - begin;
      own_ = count_ == 0 || own_ == label ? label : kNoLabel;
      for (std::int64_t i = 0; i < d_; ++i) {
        const T value = x[i * tree_.capacity + at];
        low_[i] = count_ == 0 ? value : std::min(low_[i], value);
        high_[i] = count_ == 0 ? value : std::max(high_[i], value);
      }
      walking_[count_++] = {place, id, label};
      least_id_ = std::min(least_id_, id);
      least_core_ = std::min(least_core_, cores_[place]);
    }
    if (count_ == 0) return;
    set_limit();
    walk(x, begin);
    for (std::int64_t i = 0; i < count_; ++i) {
      const Walking& point = walking_[i];
      bounds_[point.place] = std::max(bounds_[point.place], forest_.weight(point.label));
    }
  }

  // Sets the limit to the last one, in the order of edges, of the first known edges of the points' components.
  void set_limit() {
    last_ = forest_.edge(walking_[0].label);
    if (own_ == kNoLabel) {
      for (std::int64_t i = 1; i < count_; ++i) {
        const SpanningEdge edge = forest_.edge(walking_[i].label);
        if (last_ < edge) last_ = edge;
      }
    }
    limit_ = std::bit_cast<Key>(threshold(last_.weight));
  }

  // The largest sum of a point whose returned distance is at most `weight`.
  T threshold(double weight) const {
    return forest_.task.double_output ? reach_.of(weight)
                                      : reach_.of_single(std::bit_cast<std::int32_t>(static_cast<float>(weight)));
  }

  void walk(const T* x, std::int64_t begin) {
    const int top = static_cast<int>(tree_.boxes.size()) - 1;
    int level = top;
    open(top, 0);
    for (;;) {
      const auto keys = K::load(keys_[level]);
      const Key nearest = nearest_of(keys);
      if (nearest > limit_) {
        if (level++ == top) return;
        continue;
      }
      const int lane = std::countr_zero(bits(keys == nearest));
      choose(K::Truth::of(1u << lane), K(kNoChild<T>), keys).store(keys_[level]);
      const std::int64_t child = nodes_[level] * W + lane;
      if (all_are_later(below_[level], child)) continue;
      if (level == 0) compare(child, x, begin);
      else open(--level, child);
    }
  }

  // Whether all edges from the points to the points below a child are after the known edges. If the least possible
  // weight equals a known one, ends are compared: a pair ascends with both of its ends.
  bool all_are_later(const typename Forest::template Below<T>& below, std::int64_t child) const {
    const double least = std::max(least_core_, static_cast<double>(below.cores[static_cast<std::size_t>(child)]));
    if (least < last_.weight) return false;
    return least > last_.weight || forest_.pair(least_id_, below.ids[static_cast<std::size_t>(child)]) >= last_.pair;
  }

  // Finds the keys of a node's children by their distance from the box of the points; children within the component get
  // no key.
  void open(int level, std::int64_t node) {
    read_ += 2 * W;
    nodes_[level] = node;
    const T* box = static_cast<const T*>(tree_.boxes[static_cast<std::size_t>(level)]) + node * d_ * 2 * W;
    const F lowest = F::load(box);
    F sum = T{0};
    for (std::int64_t i = 0; i < d_; ++i, box += 2 * W) {
      const F gap = max(max(F::load(box) - F(high_[i]), F(low_[i]) - F::load(box + W)), F(T{0}));
      sum = Columns<STEP>::bound(sum, gap);
    }
    const auto absent = lowest == F(std::numeric_limits<T>::infinity());
    const auto own = K::load(below_[level].labels.data() + node * W) == K(static_cast<Key>(own_));
    choose(absent | own, K(kNoChild<T>), as<Key>(sum)).store(keys_[level]);
  }

  void compare(std::int64_t leaf, const T* x, std::int64_t begin) {
    const std::int64_t first = tree_.begins[leaf], count = tree_.begins[leaf + 1] - first;
    const T* y = static_cast<const T*>(tree_.rows) + leaf * d_ * tree_.capacity;
    bool offered = false;
    for (std::int64_t i = 0; i < count_; ++i) {
      const Walking& point = walking_[i];
      const double weight = forest_.weight(point.label);
      if (cores_[point.place] > weight) continue;
      read_ += count;
      T reached = threshold(weight);
      for (std::int64_t c = 0; c < d_; ++c) values_[c] = x[c * tree_.capacity + point.place - begin];
      bool loaded = false;
      for (std::int64_t p = 0; p < count; p += W) {
        F sum = T{0};
        for (std::int64_t c = 0; c < d_; ++c) {
          sum = Columns<STEP>::score(sum, F(values_[c]) - F::load(y + p + c * tree_.capacity));
        }
        const std::uint32_t present = count - p < W ? (1u << (count - p)) - 1 : (1u << W) - 1;
        const std::uint32_t passed = bits(sum <= F(reached)) & present;
        if (passed == 0) continue;
        if (!loaded) {
          for (std::int64_t c = 0; c < d_; ++c) exact_[c] = static_cast<double>(values_[c]);
          loaded = true;
        }
        if (take(point, passed, y + p, first + p)) {
          offered = true;
          reached = threshold(forest_.weight(point.label));
        }
      }
    }
    if (offered) set_limit();
  }

  // Offers the edges from a point to those at place, place + 1, ... whose bits are set; returns whether there are any.
  bool take(const Walking& point, std::uint32_t passed, const T* y, std::int64_t place) {
    constexpr int width = kRegisterLanes<double>;
    constexpr std::uint32_t run = (1u << width) - 1;
    bool offered = false;
    do {
      const int first = std::countr_zero(passed) / width * width;
      std::uint32_t lanes = passed >> first & run;
      passed &= ~(run << first);
      for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        if (labels_[place + first + lane] == point.label) lanes &= ~(1u << lane);
      }
      if (lanes == 0) continue;
      double sums[width];
      exact_columns<STEP>(exact_, y + first, tree_.capacity, d_, sums);
      for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = std::countr_zero(lanes);
        const std::int64_t other = place + first + lane;
        const double value = root_ ? std::sqrt(sums[lane]) : sums[lane];
        const double distance = forest_.task.double_output ? value : static_cast<double>(static_cast<float>(value));
        const double weight = std::max(std::max(distance, cores_[point.place]), cores_[other]);
        if (weight > forest_.weight(point.label)) continue;
        const SpanningEdge edge{weight, forest_.pair(point.id, forest_.id_at(other))};
        forest_.offer(point.label, edge);
        forest_.offer(labels_[other], edge);
        offered = true;
      }
    } while (passed != 0);
    return offered;
  }

  Forest& forest_;
  const typename Forest::template Below<T>* const below_;  // of each level
  const TreeView& tree_;
  const std::int64_t d_;
  const bool root_;  // values are square roots of sums
  const std::int32_t* const labels_;
  const double* const cores_;
  double* const bounds_;
  const Reach<T> reach_;
  Room<T> values_room_;
  Room<double> exact_room_;
  Room<Walking> walking_room_;
  T *const low_, *const high_;  // the box of the points that walk
  T* const values_;             // one of the points that walk
  double* const exact_;
  Walking* const walking_;

  std::int64_t count_ = 0;
  std::int32_t own_ = kNoLabel;  // the component of all points that walk, if it is the same
  std::int64_t least_id_ = 0;
  double least_core_ = 0;
  SpanningEdge last_;
  Key limit_ = 0;  // the threshold of the last edge as an integer
  std::int64_t read_ = 0;
  alignas(64) Key keys_[kLevels][W];
  std::int64_t nodes_[kLevels];
};

inline std::int64_t leaving_walk_tile(Forest& forest, std::int64_t begin, std::int64_t end, std::int64_t budget) {
  return with_tree_types(forest.task.metric, *forest.task.tree, [&]<class TYPES>(TYPES) {
    using T = typename TYPES::Value;
    const auto* below = [&] {
      if constexpr (sizeof(T) == sizeof(double)) return forest.below_doubles.data();
      else return forest.below_floats.data();
    }();
    return LeavingWalkOf<typename TYPES::Step, T>(forest, below).run(begin, end, budget);
  });
}

}  // namespace
}  // namespace tonari
