// Searches whose queries are the points: every product of two rows is used for both rows (komarov2014 builds the same
// graph from one half of the distance matrix).
//
// A range of rows is active: their thresholds and survivors are here, shared by all threads. A worker compares a block
// of active rows with later active rows for both sides, and with all other points for one side. A row's survivors
// change under its lock; thresholds are read without a lock, since with an old value only more points pass.
#pragma once

#include <atomic>
#include <memory>

#include "exact/look.hpp"
#include "exact/pack.hpp"
#include "exact/row_states.hpp"

namespace tonari {

class SelfJoin {
 public:
  // `look` is the contracted form of a look before the screen, or null.
  SelfJoin(const Kernel& kernel, const Form& form, const Form* look, const RowsView& points, const SearchSpec& spec,
           Isa isa);

  // Makes rows [begin, end) active; prepare() must then be called for each of them, in any order and on any thread.
  void open(std::int64_t begin, std::int64_t end);
  void prepare(std::int64_t begin, std::int64_t end, const PackedPoints& packed);
  // Tells prepared rows [begin, end) that they already have k neighbours; `values` has the returned value of each row's
  // last one, or is not finite for rows without neighbours. Such rows keep no farther point, and may find fewer than k.
  void know(std::int64_t begin, std::int64_t end, const double* values);
  // Writes the neighbours of rows [begin, end); first compares rows beyond the screen's range with points [first,
  // last).
  template <class Value, class Index>
  std::int64_t finish(std::int64_t begin, std::int64_t end, Value* distances, Index* indices, std::uint8_t* status,
                      std::int64_t first, std::int64_t last);

 private:
  friend class JoinWorker;

  const Kernel& kernel_;
  const Form& form_;
  const Form* const look_;
  const RowsView points_;
  const Sketch sketch_;
  RowStates states_;
  std::unique_ptr<std::atomic_flag[]> locks_;
  struct AsPoints {
    std::vector<float> low, own;
  };
  AsPoints whole_, contracted_;  // the terms of the active rows as points
};

// One thread's part of a join: a block of active rows, packed as queries.
class JoinWorker {
 public:
  explicit JoinWorker(SelfJoin& join) : join_(join), look_(join.kernel_, join.look_) {}

  void open(std::int64_t begin, std::int64_t end);
  // With `both`, the groups are active rows after the block, so their points get survivors too.
  void screen(const PackedPoints& points, bool looks, std::int64_t group_begin, std::int64_t group_end, bool both);
  const Look& look() const { return look_; }

 private:
  SelfJoin& join_;
  PackedQueries packed_;
  QueriesAsPoints reverse_;
  Look look_;
  std::int64_t begin_ = 0, count_ = 0;
  Scratch scratch_;
};

}  // namespace tonari
