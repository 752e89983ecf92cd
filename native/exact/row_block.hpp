// A block of queries that is compared with the points in three steps: screen, select, refine.
#pragma once

#include "exact/look.hpp"
#include "exact/pack.hpp"
#include "exact/row_states.hpp"

namespace tonari {

class RowBlock {
 public:
  // `look` is the contracted form of a look before the screen, or null.
  RowBlock(const Kernel& kernel, const Form& form, const Form* look, const RowsView& queries, const RowsView& points,
           const SearchSpec& spec, Isa isa);

  // Starts queries [begin, end). `places`, or null: for each query, the position of points near it in the order of the
  // points. `asked`: the queries in the form of the sketch; element c of query i is asked[i * spec.sketch.count + c].
  void open(std::int64_t begin, std::int64_t end, const std::int64_t* places, const float* asked);
  // Screens groups [group_begin, group_end) of `points`, after a look if `looks`, and if there is one; stride and
  // take_stride are as in Task. `marks`, or null: a byte for each of these groups, which is 0 where none of the queries,
  // a single tile, has a survivor; then no query may be beyond the screen's range.
  void screen(const PackedPoints& points, bool looks, std::int64_t group_begin, std::int64_t group_end,
              std::int64_t stride, bool take_stride, const std::uint8_t* marks = nullptr);
  // A bound s on |f(q) - f(x)|, squared, for row q and every point x that passes its threshold (exact/balls.hpp).
  double reach(std::int64_t row) const;
  void lower_thresholds() { states_.lower_thresholds(scratch_); }
  void take_thresholds(const RowBlock& other) { states_.take_thresholds(other.states_); }
  const Look& look() const { return look_; }
  void end_sample() { states_.end_sample(scratch_); }
  void absorb(RowBlock& other) { states_.absorb(other.states_, scratch_); }
  template <class Value, class Index>
  std::int64_t finish(Value* distances, Index* indices, std::uint8_t* status) {
    return states_.finish(0, states_.count(), distances, indices, status, scratch_);
  }

 private:
  const Kernel& kernel_;
  const Form& form_;
  const RowsView queries_;
  const std::int64_t sketched_;  // number of columns of the sketch
  const bool sampled_;           // whether the first pass of a stride is a sample, or a part of the search
  PackedQueries packed_;
  Look look_;
  RowStates states_;
  Scratch scratch_;
};

}  // namespace tonari
