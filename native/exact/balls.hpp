// Balls around the groups of a contracted copy: which groups a tile of queries has to look at.
//
//   c = the mean of a group's rows f(x), rounded as the kernel rounds;  r = the largest |f(x) - c|
//
// A point survives a query whose threshold is t only if its score is at most t, that is, if |q' - x'| is at most s, and
// then |f(q) - c| <= s + r (docs/exactness.md, "A look at contracted rows"). With the squares written out, this is
//
//   squares    |c|^2 - r^2     - 2 <f(q), c> - 2 r s <= t      s^2 = t + |q'|^2
//   angles     |c|^2 - r^2 - 1 - 2 <f(q), c> - 2 r s <= t      s^2 = t + 2
//   products   min a(x')       - 2 <f(q), c> - 2 r |q'| <= t   since <q', x'> <= <f(q), c> + |q'| r
//
// This has the form of a screen's test: a centre is a point with a term of its own and the error 2 r for each unit of
// s. So the look's kernel compares centres as it compares points, a group of them (a cell) at a time.
#pragma once

#include "exact/pack.hpp"
#include "exact/row_writer.hpp"

namespace tonari {

class Balls {
 public:
  // Makes room for the groups of `count` points.
  Balls(const Kernel& kernel, const Form& form, std::int64_t count);

  // Adds the next group, which has `count` rows. After the last group, the rows are no longer needed.
  void add(const ScreenRows& rows, std::int64_t count);

  // Working memory of a thread that calls mark().
  struct Marks {
    std::vector<std::uint8_t> groups;   // [tile][group of the range]: whether to look at the group
    std::vector<std::uint8_t> centres;  // the same, for all groups of the cells that the range touches
    std::vector<float> reach, threshold, no_norm;
  };
  // Marks the groups that a look has to compare. `look` is its task, and `queries` are its packed queries.
  void mark(const Task& look, const PackedQueries& queries, Marks& marks) const;

  std::int64_t bytes() const;

 private:
  void pack_cell();
  void thresholds(const Task& look, Marks& marks) const;

  const Kernel& kernel_;
  const Form& form_;
  std::int64_t points_, added_ = 0;
  PackedGroups centres_;
  std::vector<float> radius_, square_;  // r, rounded up, and |c|^2, rounded down

  // The rows of the cell that is being filled.
  struct Row {
    std::int64_t group;
    double error;
  };
  PointWriter writer_;
  std::vector<Row> rows_;
  AlignedVector<double> values_, means_;
  std::vector<double> least_;  // least term of each group; -kHuge if a row is beyond the screen's range
};

}  // namespace tonari
