// Which types a search through a tree is compiled for: what a column adds, the rows' type, and the list.
#pragma once

#include "kdtree/leaf_scan.hpp"

namespace tonari {
namespace {

template <class STEP, class T, class NEAREST>
struct TreeTypes {
  using Step = STEP;
  using Value = T;
  using Nearest = NEAREST;
};

// Calls f with the TreeTypes of a task.
template <class F>
auto with_tree_types(const TreeTask& task, const F& f) {
  const auto by_list = [&]<class STEP, class T>(STEP, T) {
    const bool words = !task.double_output && !task.tree->wide_ids && task.k <= NearestWords::kMost;
    return words ? f(TreeTypes<STEP, T, NearestWords>{}) : f(TreeTypes<STEP, T, NearestHeap>{});
  };
  const auto by_rows = [&]<class STEP>(STEP step) {
    return task.tree->double_rows ? by_list(step, double{}) : by_list(step, float{});
  };
  if (!is_elementwise(task.metric)) return by_rows(SquareStep{});
  return with_term(task.metric, [&](auto term) {
    if constexpr (term.in_trees) return by_rows(TermStep<decltype(term)>{});
    else return decltype(by_rows(SquareStep{})){};  // not reached: bind_kdtree_search.cpp refuses such metrics
  });
}

}  // namespace
}  // namespace tonari
