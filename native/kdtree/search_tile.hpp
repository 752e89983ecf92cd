// The walk through a tree, written once for every instruction set (simd/vec.hpp). Internal linkage throughout: each
// instruction set compiles its own copy.
#pragma once

#include "kdtree/leaf_scan.hpp"
#include "kdtree/tree_types.hpp"

namespace tonari {
namespace {

template <class STEP, class T>
class TreeWalk {
  static constexpr int W = kTreeWidth;
  using Key = ChildKey<T>;
  using K = ChildKeys<T>;
  static constexpr int kLevels = 16;  // enough for 16^16 leaves

 public:
  explicit TreeWalk(const TreeTask& task)
      : task_(task),
        tree_(*task.tree),
        scan_(task),
        values_(value_room_.get(tree_.d)),
        list_(list_room_.get(scan_.list_bytes())) {}

  std::int64_t run(std::int64_t begin, std::int64_t end, std::int64_t budget, TreeVisits& visits) {
    const TreeVisits before = visits;
    while (begin < end) {
      const std::int64_t row = task_.order != nullptr ? task_.order[begin] : begin;
      query_ = scan_.begin(row, values_, list_);
      set_limit();
      walk(visits);
      scan_.write(query_, row);
      ++begin;
      const std::int64_t values = visits.points - before.points + 2 * W * (visits.nodes - before.nodes);
      if (values * tree_.d > budget) break;
    }
    return begin;
  }

 private:
  void walk(TreeVisits& visits) {
    const int top = static_cast<int>(tree_.boxes.size()) - 1;
    int level = top;
    open(top, 0, visits);
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
      if (level == 0) {
        ++visits.leaves;
        visits.points += tree_.begins[child + 1] - tree_.begins[child];
        scan_.template scan<1>(child, {&query_});
        set_limit();
      } else {
        open(--level, child, visits);
      }
    }
  }

  void open(int level, std::int64_t node, TreeVisits& visits) {
    ++visits.nodes;
    nodes_[level] = node;
    child_keys<STEP>(tree_, level, node, query_.values).store(keys_[level]);
  }

  void set_limit() { limit_ = std::bit_cast<Key>(query_.threshold); }

  const TreeTask& task_;
  const TreeView& tree_;
  LeafScan<STEP, T> scan_;
  Room<T> value_room_;
  Room<std::byte> list_room_;
  T* const values_;
  std::byte* const list_;

  TreeQuery<T> query_;
  Key limit_ = 0;  // the query's threshold as an integer
  alignas(64) Key keys_[kLevels][W];
  std::int64_t nodes_[kLevels];
};

inline std::int64_t tree_search_tile(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                                     TreeVisits& visits) {
  return with_tree_types(task.metric, *task.tree, [&]<class TYPES>(TYPES) {
    return TreeWalk<typename TYPES::Step, typename TYPES::Value>(task).run(begin, end, budget, visits);
  });
}

}  // namespace
}  // namespace tonari
