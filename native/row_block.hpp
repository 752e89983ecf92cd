// A block of queries on its way through screen -> select -> refine.
//
// Every row keeps a small buffer of survivors, appended to without order and condensed only when full (tang2015 III-D,
// Buffered Search). Condensing finds the k-th smallest upper bound; whatever cannot be below it is dropped, and the
// row's threshold falls to it, so that the screen lets ever less through. A row whose survivors cannot be told apart by
// their bounds either stops and reports `climb` (a finer precision will do better) or settles: the buffered survivors
// are judged by their exact values at once, the k best are kept, and the screen goes on below the k-th of them. So the
// answer is exact for any data; hard data costs time.
#pragma once

#include <span>

#include "bounds.hpp"
#include "order.hpp"
#include "pack.hpp"
#include "refine.hpp"

namespace tonari {

enum class RowStatus : std::uint8_t {
  done = 0,
  climb = 1,   // too many survivors at this precision
  resample = 2,  // the sampled threshold was too low: search again without it
};

struct Survivor {
  float lower, upper;  // bounds on the score
  std::int64_t id;
};

struct SearchSpec {
  std::int64_t k = 0;
  const std::int64_t* self_ids = nullptr;  // per query of the whole set: the point it must not find; null for none
  bool double_output = false;
  bool may_climb = false;
  std::int64_t capacity = 0;    // survivors a row may hold before it climbs or settles
  std::int64_t sample_rank = 0; // matsumoto2015: rank that the sample's threshold has; 0 for no sample
};

class RowBlock {
 public:
  RowBlock(const Kernel& kernel, const Form& form, const RowsView& queries, const RowsView& points,
           const SearchSpec& spec, Isa isa);

  // Starts on queries [begin, end). A block is opened many times, since its buffers are worth keeping: fresh memory
  // costs more than all that is written to it.
  void open(std::int64_t begin, std::int64_t end);

  // Screens groups [group_begin, group_end) of `points`; stride and take as in Task.
  void screen(const PackedPoints& points, std::int64_t group_begin, std::int64_t group_end, std::int64_t stride,
              bool take_stride);
  // After the sample: its threshold becomes every row's, to be checked in finish().
  void end_sample();
  // Takes over the survivors of a block of the same queries that saw other points.
  void absorb(RowBlock& other);
  // Refines, orders and writes rows [begin, end) of the outputs; returns how many survivors were refined.
  template <class Value, class Index>
  std::int64_t finish(Value* distances, Index* indices, std::uint8_t* status);

 private:
  struct Row {
    std::vector<Survivor> survivors;
    std::vector<Ranked> settled;  // exact, at most k
    std::int64_t wanted = 0;      // k, and one more where the row itself may be among the survivors
    float sampled = 0;            // threshold taken from the sample, if `was_sampled`
    bool was_sampled = false;
    bool climbs = false;
  };

  static void keep(void* self, std::int64_t row, float lower, float upper, std::int64_t point);
  void make_room(std::int64_t row);
  // Drops what the rank-th smallest upper bound rules out; returns that bound's threshold.
  float condense(std::int64_t row, std::int64_t rank);
  // Replaces the survivors by their exact values.
  void refine(std::int64_t row);
  void settle(std::int64_t row);
  void search_exactly(std::int64_t row, std::int64_t begin, std::int64_t end);
  void rank_exactly(std::int64_t row, std::span<const std::int64_t> ids);
  bool sample_was_enough(const Row& row, std::int64_t r) const;

  const Kernel& kernel_;
  const RowsView queries_, points_;
  const Form& form_;
  const SearchSpec spec_;
  const Bounds bounds_;
  const ExactValues exact_values_;
  std::int64_t begin_ = 0, count_ = 0;
  PackedQueries packed_;
  std::vector<Row> rows_;  // at least count_
  std::vector<float> uppers_;
  std::vector<std::int64_t> ids_;
  std::vector<double> values_;
  std::int64_t base_ = 0;  // index of the first point under the kernel
  bool sampling_ = false;
};

}  // namespace tonari
