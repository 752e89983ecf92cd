// The buffered traversal: gieseke2014, algorithms 1 to 3, for one block of queries, all on one thread.
//
//   input     the queries of the block that have not begun, in their order
//   reinsert  a queue of queries that have been compared with a leaf
//   buffers   for each leaf, the queries that wait for it
//
// A round takes M = 5 B queries from reinsert or, only where that is empty, from input, and moves each on to its next
// leaf (FindLeafBatch), whose buffer it enters; a query without a next leaf is finished. If a buffer is then half full,
// with B / 2 queries or more, or if both queues are empty, all buffers are emptied (ProcessAllBuffers): the queries of a
// leaf are compared with its points, several queries at a time for each point that is loaded, and go to reinsert. A
// buffer has no upper limit, since it is a list through the queries themselves: B sets the pace only.
//
// The paper walks the binary tree of splits. Here a query walks the tree of boxes, 16 children a node, as the walk does
// (search.hpp), since the boxes skip more and there are fewer levels. Instead of a stack it keeps the last leaf and, for
// each level, the key of the last child that it entered; the children of a node are entered in ascending order of (key,
// number), so the next one is the smallest above that. Keys of a node are computed again when a query returns to it; one
// key is kept for each level, not 16.
//
// Exact: keys have the same bits each time (children.hpp), so a query enters children in the order of the walk, each at
// most once, and compares them with the same limit, that of its k best points in the leaves before. It therefore visits
// the leaves of the walk, in their order, and every point that it skips is farther than its k-th point so far
// (docs/kdtree.md, "Exactness"). This does not depend on which queries share a leaf, or when. A last child whose key
// exceeds the limit ends a node, since the others have larger keys and the limit never grows.
//
// The walk takes less time on every CPU that was measured. This form reproduces the paper, so it is compiled for the
// paper's case alone: squares of differences, and rows of float32.
#pragma once

#include <memory>

#include "kdtree/search.hpp"

namespace tonari {

struct TreeRoundCounts {
  std::int64_t rounds = 0;   // calls of FindLeafBatch
  std::int64_t emptied = 0;  // calls of ProcessAllBuffers
  std::int64_t full = 0;     // number of these calls that were made because a buffer was half full
  std::int64_t tiles = 0;    // number of times that one or several queries were compared with a leaf
  double find_seconds = 0, process_seconds = 0;
};

class TreeRounds {
 public:
  virtual ~TreeRounds();
  // Continues until all queries are finished, or until it has read about `budget` values of points and boxes. Counts
  // its visits, and returns the number of queries that it has finished.
  virtual std::int64_t run(std::int64_t budget, TreeVisits& visits) = 0;

  TreeRoundCounts counts;
};

// Makes rounds for queries order[begin], ... up to `end`, with buffers of B = `buffer` queries. The task must outlive
// them, and must be one that rounds support.
using MakeTreeRounds = std::unique_ptr<TreeRounds> (*)(const TreeTask& task, std::int64_t begin, std::int64_t end,
                                                       std::int64_t buffer);

MakeTreeRounds tree_rounds(Isa isa);

inline bool rounds_serve(const TreeTask& task) { return is_euclidean(task.metric) && !task.tree->double_rows; }

}  // namespace tonari
