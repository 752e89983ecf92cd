// A block of queries is compared with the points, and finds all points within the radius of each query.
//
// The threshold of a row is constant: the score that no point within the radius exceeds. A point that survives the
// screen is certainly within the radius if its upper bound is at most score_within(), which is enough for a count. The
// exact values of all other survivors are computed, some thousands at a time, and points outside are dropped at once.
// So a block needs memory for its answer and for one batch. If its answer is too large for its room, it stops, and the
// caller opens it again in parts.
#pragma once

#include "core/allowed.hpp"
#include "exact/look.hpp"
#include "exact/pack.hpp"
#include "exact/row_states.hpp"

namespace tonari {

struct RadiusSpec {
  const double* limits = nullptr;          // for every query, the farthest returned value within its radius
  const std::int64_t* self_ids = nullptr;  // for every query, the point that it must not find; or null
  const AllowedPairs* allowed = nullptr;   // which points each query may find; null: all others
  // Find only points after the query's own, so that each pair of points is found once. `self_ids` ascend if the points
  // have no other order.
  bool later = false;
  bool lists = true;  // false: only counts
  bool double_output = false;
  std::int64_t room = kNoLimit;  // most points in all lists together, if there is more than one row
};

class RadiusBlock {
 public:
  // `look` is the contracted form of a look before the screen, or null.
  RadiusBlock(const Kernel& kernel, const Form& form, const Form* look, const RowsView& queries, const RowsView& points,
              const RadiusSpec& spec, Isa isa);

  // Starts queries [begin, end).
  void open(std::int64_t begin, std::int64_t end);
  // Screens groups [group_begin, group_end) of `points`, unless the block is full; after a look if `looks`, and if
  // there is one.
  void screen(const PackedPoints& points, bool looks, std::int64_t group_begin, std::int64_t group_end);
  // Adds the results of `other` for the same queries among other points.
  void absorb(RadiusBlock& other);
  // Evaluates the pending points, and writes the number of points that each row found. Returns the number of exact
  // values that were not needed: those of points outside for lists, all for counts. After count() or absorb(), full()
  // is final.
  std::int64_t count(std::int64_t* counts);
  const Look& look() const { return look_; }
  bool full() const { return full_; }
  std::int64_t found() const { return found_; }
  // Orders the lists and writes them one after another.
  template <class Value, class Index>
  void write(Value* distances, Index* indices);

 private:
  struct Row {
    double key = 0;              // sort key of the farthest value within the radius
    float within = 0;            // a point with at most this upper bound is certainly within the radius
    bool none = false;           // whether no value is within the radius
    bool every = false;          // whether every value is within the radius
    std::int64_t count = 0;      // number of points found
    std::vector<Ranked> listed;  // the same points, for lists
    AllowedRow allowed;          // which points the query may find, if there are rules
  };
  struct Pending {
    std::int64_t row, id;
  };

  void start(std::int64_t row);
  void take(std::int64_t row, float upper, std::int64_t id);
  std::int64_t point_at(std::int64_t place) const { return points_.order != nullptr ? points_.order[place] : place; }
  bool is_left_out(std::int64_t row, std::int64_t id);
  void count_inside();
  void evaluate_pending();
  // Evaluates the points of scratch_.ids for a row, and keeps those within its radius.
  void evaluate(std::int64_t row);
  void search_exactly(std::int64_t row, std::int64_t begin, std::int64_t end);
  void count_all(std::int64_t row, std::int64_t begin, std::int64_t end);
  void check_room();

  const Kernel& kernel_;
  const Form& form_;
  const RowsView queries_, points_;
  const RadiusSpec spec_;
  const Bounds bounds_;
  const ExactValues exact_values_;
  PackedQueries packed_;
  Look look_;
  std::int64_t begin_ = 0, count_ = 0, found_ = 0, vain_ = 0;
  bool full_ = false;
  std::vector<Row> rows_;  // at least count_ elements
  std::vector<float> thresholds_;
  std::vector<Pending> inside_;             // certainly within the radius; the rules are not looked up yet
  std::vector<Pending> pending_;            // neither their values nor their rules are known yet
  std::vector<std::int64_t> starts_, ids_;  // where each row's pending points begin, and these points
  Scratch scratch_;
};

}  // namespace tonari
