// One round of NN-Descent for some rows: every point is compared with the neighbours of its neighbours.
//
//   hubs      a row's first entries, and the rows that have it among theirs
//   others    reverse neighbours and the hubs' first entries, where the hub or the entry is new; none twice, none of
//             the row's own; of too many, those first in a fixed pseudo-random order
//   row       the best of its own entries and the others by (returned value, id)
//
// All rows read the lists of the previous round, and each row writes only its own, so that the result depends on
// nothing else. Others are first compared in float32, with a bound on the rounding errors (scores.hpp). Points that
// cannot be among the best are left out, and the rest are compared by exact values (docs/exactness.md, "The value").
//
// If only the first k of each row are wanted (`kept` is null), own entries are ruled out by their scores as well, and
// contracted rows may give the scores, since they bound distances from below.
#pragma once

#include "core/cpu.hpp"
#include "core/metrics.hpp"
#include "nn_descent/lists.hpp"

namespace tonari {

// Contracted rows (exact/form.hpp) in float32, whose distances, less `error`, are at most `scale` times those of points.
struct ShortRows {
  const float* rows = nullptr;  // (n, columns); null: there are none
  std::int64_t columns = 0;
  double scale = 1, error = 0;
};

struct DescentTask {
  Metric metric = Metric::euclidean;
  RowsView points;
  const float* terms = nullptr;  // (n, 2), from point_terms; null for metrics without terms
  ShortRows shorts;              // for metrics of squared differences
  std::int64_t list = 0, hubs = 0, reverse = 0, breadth = 0, width = 0, k = 0;
  std::int64_t boundary = -1;             // only points on different sides of this id are compared; -1: all are
  const std::int32_t* entries = nullptr;  // (n, list)
  const std::int32_t* behind = nullptr;   // (n, reverse): the reverse lists (reverse.hpp)
  const std::int32_t* order = nullptr;    // the order in which rows are processed; null: ascending
  bool double_output = false;
  std::int32_t* kept = nullptr;     // (n, list): the entries after the round; null: they are not wanted
  void* distances = nullptr;        // (n, k): distances of the first k entries
  std::int32_t* indices = nullptr;  // (n, k)
  double* sums = nullptr;           // (n,): the sum of a row's finite distances
};

// Processes rows order[begin], ..., order[end - 1]; returns how many of their first k entries are new to their lists.
using DescentRound = std::int64_t (*)(const DescentTask& task, std::int64_t begin, std::int64_t end);

DescentRound descent_round(Isa isa);

// Whether float32 scores need terms of points (nn_descent/scores.hpp), and the computation of those terms for points
// [begin, end), two numbers each.
bool has_terms(Metric metric, Dtype dtype);
void point_terms(Metric metric, const RowsView& points, std::int64_t begin, std::int64_t end, float* terms);

}  // namespace tonari
