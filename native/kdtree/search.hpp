// Exact search through a k-d tree by the walk: each query depth first to its end, the nearest child first, over the
// arrays of tonari.kdtree.cpu.tree. kdtree/buffered.hpp has the other traversal, which processes many queries together.
//
// A node's 16 children are compared with the query at once, and so are 16 points of a leaf. A point that may belong to
// the answer gets its exact value (docs/exactness.md, "The value") and is kept if it is one of the k best so far by
// (returned value, index). docs/kdtree.md, "Exactness", shows that no other point can be one.
#pragma once

#include <vector>

#include "core/cpu.hpp"
#include "core/metrics.hpp"

namespace tonari {

constexpr int kTreeWidth = 16;  // children of a node, and points that are compared at once

// The arrays of a tree; their shapes and order are those of tonari.kdtree.cpu.tree.Tree.
struct TreeView {
  std::int64_t d = 0;
  std::int64_t height = 0;
  std::int64_t capacity = 0;
  bool double_rows = false;  // rows, boxes and split values are float64, else float32
  bool wide_ids = false;     // ids are int64, else int32
  const std::int64_t* begins = nullptr;
  const void* ids = nullptr;
  const void* rows = nullptr;
  std::vector<const void*> boxes;  // one array per level; the last is the top
  const std::int32_t* split_dimensions = nullptr;
  const void* split_values = nullptr;
};

struct TreeVisits {
  std::int64_t leaves = 0, nodes = 0, points = 0;
};

struct TreeTask {
  const TreeView* tree = nullptr;
  Metric metric = Metric::euclidean;
  std::int64_t k = 1;
  RowsView queries;
  const std::int64_t* order = nullptr;     // the order in which queries are searched; null: as given
  const std::int64_t* self_ids = nullptr;  // for each query, the point that it must not find; null: none
  bool double_output = false;
  void* distances = nullptr;  // (queries, k)
  void* indices = nullptr;    // (queries, k), of the same type as the tree's ids
};

// Searches for queries order[begin], ... up to `end`, or until about `budget` values of points and boxes have been
// read; counts its visits, and returns the position in the order at which it stopped.
using TreeSearch = std::int64_t (*)(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                                    TreeVisits& visits);

TreeSearch tree_search(Isa isa);

// Finds the leaf to which the splits lead, for each of queries [begin, end).
void first_leaves(const TreeView& tree, const RowsView& queries, std::int64_t begin, std::int64_t end,
                  std::int32_t* leaves);

// Orders the queries by (leaf, number), ascending.
void order_by_leaf(const std::int32_t* leaves, std::int64_t m, std::int64_t count, std::int64_t* order);

}  // namespace tonari
