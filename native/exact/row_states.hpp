// The state of rows during select and refine: their running thresholds, their survivors, their exact results.
//
// Every row has a small buffer of survivors, appended in any order and condensed only when full (tang2015 III-D,
// Buffered Search). Condensing finds a bound on the k-th smallest score, drops all survivors that cannot be below it,
// and lowers the row's threshold to it, so that fewer and fewer points survive the screen. If the bounds of a row's
// survivors do not distinguish them, the row either stops and reports `retry` (for a finer precision) or is resolved
// exactly at once: the exact values of the buffered survivors are computed, the k best are kept, and the screen
// continues below the k-th of them. So the answer is exact for any data; hard data only take more time.
#pragma once

#include <limits>
#include <span>

#include "exact/bounds.hpp"
#include "exact/key_lists.hpp"
#include "exact/refine.hpp"
#include "exact/survivor_rooms.hpp"
#include "select/order.hpp"

namespace tonari {

enum class RowStatus : std::uint8_t {
  done = 0,
  retry = 1,     // too many survivors at this precision
  resample = 2,  // the sampled threshold was too low: search again without it
};

// Points in an order in which neighbours are near each other, in few columns: element c of the point at place p is
// columns[c * stride + p].
struct Sketch {
  const float* columns = nullptr;
  std::int64_t count = 0, stride = 0;
};

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

struct SearchSpec {
  std::int64_t k = 0;
  const std::int64_t* self_ids = nullptr;  // for every query, the point that it must not find; null: none
  bool double_output = false;
  bool may_retry = false;
  std::int64_t capacity = 0;       // most survivors of a row; then it retries or is resolved exactly
  std::int64_t growth = kNoLimit;  // most survivors of all rows together, beyond their first rooms
  std::int64_t sample_rank = 0;    // rank of the sample that becomes the threshold (matsumoto2015); 0 for no sample
  Sketch sketch{};                 // empty if points have no order of their own
};

// The working memory of one thread.
struct Scratch {
  std::vector<std::int32_t> keys;
  std::vector<float> apart;
  std::vector<std::int64_t> ids;
  std::vector<double> values;
  std::vector<Ranked> ranked;
};

class RowStates {
 public:
  RowStates(const Form& form, const RowsView& queries, const RowsView& points, const SearchSpec& spec, Isa isa);

  // Starts `count` queries from `begin` on, each with a first room for `room` survivors. One object is opened many
  // times and keeps its buffers, since allocating memory takes longer than writing to it.
  void open(std::int64_t begin, std::int64_t count, std::int64_t room);
  // Sets a row's query_term. No point passes the threshold of a row beyond the screen's range.
  void start(std::int64_t row, double shift, bool beyond);
  // Tells a row that it already has k neighbours, of which the last has this returned value; a value that is not finite
  // says nothing. The row then keeps no farther point, and may find fewer than k.
  void know(std::int64_t row, double value);

  std::int64_t begin() const { return begin_; }
  std::int64_t count() const { return count_; }
  bool is_beyond(std::int64_t row) const { return rows_[static_cast<std::size_t>(row)].beyond; }
  // One per row, followed by a register of thresholds that no point passes.
  const float* thresholds() const { return thresholds_.data(); }

  void keep(std::int64_t row, Survivor survivor, bool sampling, Scratch& scratch) {
    Slot& slot = slots_[static_cast<std::size_t>(row)];
    *slot.next++ = survivor;
    if (slot.next == slot.end) make_room(row, sampling, scratch);
  }
  // Computes a row's first threshold: the exact values of the points around a place that are nearest in the sketch. The
  // row's own elements in the sketch are asked[c * apart]. The row is compared with these points again later, because
  // few of them are kept from the start.
  void expect(std::int64_t row, std::int64_t place, const float* asked, std::int64_t apart, Scratch& scratch);
  // Ends the sample: it determines the threshold of each row, which finish() checks.
  void end_sample(Scratch& scratch);
  // Lowers the thresholds of all rows as far as their survivors allow.
  void lower_thresholds(Scratch& scratch);
  // Takes thresholds of `other`, which has the same queries; its results must be absorbed later, or absorb these.
  void take_thresholds(const RowStates& other);
  // Adds the results of `other` for the same queries among other points.
  void absorb(RowStates& other, Scratch& scratch);
  // Compares a row with points [begin, end) by exact values, without the screen.
  void search_exactly(std::int64_t row, std::int64_t begin, std::int64_t end, Scratch& scratch);
  // Refines rows [first, last), and writes their ordered neighbours to the start of the outputs; returns how many
  // survivors were refined.
  template <class Value, class Index>
  std::int64_t finish(std::int64_t first, std::int64_t last, Value* distances, Index* indices, std::uint8_t* status,
                      Scratch& scratch);

 private:
  // Where a row's next survivor is stored. The screen accesses nothing else of a row, so a block's slots stay in L1.
  struct Slot {
    Survivor* next = nullptr;
    Survivor* end = nullptr;
  };
  struct Row {
    Survivor* survivors = nullptr;
    std::int64_t room = 0;        // number of survivors at which the row is condensed
    std::int64_t held = 0;        // number of survivors for which the row has memory
    std::vector<Ranked> settled;  // the best points resolved exactly, at most k; the capacity is no larger
    std::int64_t resolved = 0;    // number of survivors that were resolved and dropped
    double shift = 0;
    float sampled = 0;  // threshold taken from the sample, if `was_sampled`
    bool was_sampled = false;
    bool retries = false;
    bool beyond = false;
    bool known = false;  // whether the row has k neighbours already, which are stored elsewhere
    bool grown = false;  // whether the row's survivors have moved out of its first room
  };

  std::span<Survivor> survivors(std::int64_t row) {
    const auto at = static_cast<std::size_t>(row);
    return {rows_[at].survivors, slots_[at].next};
  }
  void set_room(std::int64_t row, std::int64_t room);
  bool grow(std::int64_t row, std::int64_t room);  // keeps the survivors; returns false at the limit
  void keep_first(std::int64_t row, std::int64_t count) {
    const auto at = static_cast<std::size_t>(row);
    slots_[at].next = rows_[at].survivors + count;
  }
  void make_room(std::int64_t row, bool sampling, Scratch& scratch);
  // Drops survivors that are ruled out by the rank-th smallest upper bound, or by exact values if scores have no upper
  // bounds.
  void condense(std::int64_t row, std::int64_t rank, Scratch& scratch);
  // Computes the exact values of the `count` survivors with the smallest lower bounds. Drops these survivors, and all
  // others that the k-th best value rules out.
  void resolve_lowest(std::int64_t row, std::int64_t count, Scratch& scratch);
  void drop_above_threshold(std::int64_t row);
  // Moves the row's resolved points and its survivors, with their exact values, into scratch.ranked.
  void refine(std::int64_t row, Scratch& scratch);
  void settle(std::int64_t row, Scratch& scratch);
  // Keeps the k best of scratch.ranked, and takes the threshold from the last of them.
  void keep_settled(std::int64_t row, Scratch& scratch);
  // Adds the points of scratch.ids to scratch.ranked.
  void rank_exactly(std::int64_t row, Scratch& scratch);
  bool sample_was_enough(const Row& row, const std::vector<Ranked>& ranked) const;
  void set_threshold(std::int64_t row, float value);
  void lower_threshold(std::int64_t row, double returned);  // points with a farther returned value are dropped

  const Form& form_;
  const RowsView queries_, points_;
  const SearchSpec spec_;
  const Bounds bounds_;
  const ExactValues exact_values_;
  const KeyLists lists_;
  const std::int64_t wanted_;  // k, or k + 1 if the row itself may be among the survivors
  SurvivorRooms rooms_;
  std::int64_t begin_ = 0, count_ = 0;
  std::vector<Row> rows_;  // at least count_
  std::vector<Slot> slots_;
  std::vector<float> thresholds_;
};

}  // namespace tonari
