// The types for which a search through a tree is compiled: the term of a column, and the type of the rows.
#pragma once

#include "exact/refine_tile.hpp"
#include "kdtree/search.hpp"

namespace tonari {
namespace {

template <class STEP, class T>
struct TreeTypes {
  using Step = STEP;
  using Value = T;
};

// Calls f with the TreeTypes of a metric and a tree.
template <class F>
auto with_tree_types(Metric metric, const TreeView& tree, const F& f) {
  const auto by_rows = [&]<class STEP>(STEP) {
    return tree.double_rows ? f(TreeTypes<STEP, double>{}) : f(TreeTypes<STEP, float>{});
  };
  if (!is_elementwise(metric)) return by_rows(SquareStep{});
  return with_term(metric, [&](auto term) {
    if constexpr (term.in_trees) return by_rows(TermStep<decltype(term)>{});
    else return decltype(by_rows(SquareStep{})){};  // not reached: the bindings refuse such metrics
  });
}

}  // namespace
}  // namespace tonari
