// Builds the tree of tonari.kdtree.cpu.tree from rows; tonari/kdtree/reference.py does the same in plain NumPy.
//
// Every node is cut at its exact median, in order of (value, row), so that the tree depends on the points alone: not on
// threads, ranges or samples. A TreeTop cuts the first levels, all nodes of a level together, by passes over ranges of
// the rows; tree_below cuts each node below them, down to the leaves, within the cache.
#pragma once

#include <memory>

#include "core/common.hpp"

namespace tonari {

// The dimension of a cut is chosen from a sample. In a node of more than kSampledFrom points, the sample consists of
// the rows whose number is a multiple of kSampleStep (a prime, so that periodic rows do not bias it); in a smaller
// node, of at most kLookedAt rows.
constexpr std::int64_t kSampledFrom = 16384;
constexpr std::int64_t kSampleStep = 61;
constexpr std::int64_t kLookedAt = 128;

// The place of the first point of node `index` of a level: index * n >> level, whose product may overflow.
inline std::int64_t node_begin(std::int64_t n, int level, std::int64_t index) {
  const std::int64_t rest = n & ((std::int64_t{1} << level) - 1);
  return index * (n >> level) + (index * rest >> level);
}

// The splits in breadth-first order: 2^height - 1 of them.
template <class T>
struct TreeSplits {
  std::int32_t* dimensions;
  T* values;
};

// The arrays that tree_below fills; their shapes are those of tonari.kdtree.cpu.tree.Tree.
template <class T>
struct TreeParts {
  int height;
  std::int64_t capacity;
  TreeSplits<T> splits;
  T* rows;   // (leaves, d, capacity)
  T* boxes;  // (ceil(leaves / 16), d, 2, 16)
};

// The first `levels` levels (0 to 8). For each level: count() every range, cut() every node, repeat both for the nodes
// whose cut() returned false, then descend(). At the end tally() every range, then place() every range. Calls of the
// same function for different ranges or nodes may run in parallel.
class TreeTop {
 public:
  virtual ~TreeTop() = default;
  virtual void count(std::int64_t range) = 0;
  virtual bool cut(std::int64_t node) = 0;
  virtual void descend() = 0;
  virtual void tally(std::int64_t range) = 0;
  // Writes row numbers in order of (node, row) into `ids` (n).
  virtual void place(std::int64_t range, std::int32_t* ids) = 0;
  virtual void place(std::int64_t range, std::int64_t* ids) = 0;
};

template <class T>
std::unique_ptr<TreeTop> make_tree_top(const RowsView& points, int levels, std::int64_t ranges, TreeSplits<T> splits);

// Cuts node `index` of `level` down to its leaves. `ids` (n) has the node's rows at its places, ascending.
template <class T, class Id>
void tree_below(const RowsView& points, int level, std::int64_t index, Id* ids, const TreeParts<T>& parts);

}  // namespace tonari
