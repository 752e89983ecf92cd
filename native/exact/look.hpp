// A look at contracted rows before all columns are compared: which groups of points may hold a survivor.
//
//   for tile of queries, for group of points:
//     the ball around the group                passed over if no query reaches it (exact/balls.hpp)
//     contracted scores, of p columns          each at most the score (exact/form.hpp)
//     mark the group for the tile              if its least lower bound reaches a threshold
//   the screen of all d columns visits what is marked
//
// A contracted score is a lower bound of the score, with the same terms of the point and of the query, so the rows'
// thresholds serve both, and a group that is not marked has no survivor (docs/exactness.md, "A look at contracted
// rows").
#pragma once

#include "exact/balls.hpp"
#include "exact/pack.hpp"

namespace tonari {

// The terms that queries have as points, for products that serve both sides.
struct QueriesAsPoints {
  std::vector<float> low, own;              // as in PointsView, by row; the padding of the last tile is never found
  std::vector<float> tile_norm, tile_rest;  // the largest of each tile of queries

  // `low` and `own` belong to the `count` queries.
  void set(const Kernel& kernel, const PackedQueries& queries, const float* low, const float* own, std::int64_t count);
  ReverseView view(const float* threshold) const;
};

// Counts of pairs of a query tile and a point group: all pairs, pairs that were looked at, and marked pairs.
struct Looked {
  std::int64_t pairs = 0, looked = 0, marked = 0;
};

class Look {
 public:
  // A look before a screen. If `form` is null, there is none, and mark() does nothing.
  Look(const Kernel& screen, const Form* form)
      : screen_(screen), kernel_(form == nullptr ? screen : look_kernel(screen)), form_(form) {}

  // Starts on queries [begin, end), and returns them packed for the screen, in its form.
  PackedQueries open(const Form& form, const RowsView& queries, std::int64_t begin, std::int64_t end);
  // Marks the groups that `task` has to visit. `points` is the contracted copy of the task's points; null: visit all.
  void mark(const PackedPoints* points, Task& task);

  const Kernel& kernel() const { return kernel_; }
  const Form* form() const { return form_; }
  const PackedQueries& queries() const { return queries_; }
  QueriesAsPoints& reverse() { return reverse_; }
  const Looked& looked() const { return looked_; }

 private:
  const Kernel& screen_;
  const Kernel& kernel_;
  const Form* form_;
  PackedQueries queries_;
  QueriesAsPoints reverse_;
  Balls::Marks reached_;
  std::vector<std::uint8_t> marks_;
  Looked looked_;
  std::int64_t pass_ = 0;  // number of next looks that do not compare balls
};

}  // namespace tonari
