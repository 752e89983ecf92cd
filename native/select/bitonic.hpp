// Truncated bitonic sort (Sismanis et al. 2012, the baseline of tang2015 and komarov2014), row by row; short rows are
// sorted side by side (short_rows.hpp).
//
//   K = smallest power of two >= k
//   runs of K values are sorted; two sorted runs merge to the K smallest of both, the upper half is dropped:
//
//       a0 <= a1 <= ... <= aK-1     min(a0, bK-1), min(a1, bK-2), ..., min(aK-1, b0)     bitonic, so that log2 K
//       b0 <= b1 <= ... <= bK-1     are the K smallest                                   half-cleaners sort them
//
// Each lane of a register holds an entry of another run, so that all steps but the last merges compare whole registers.
// The comparisons do not depend on the data.
#pragma once

#include <algorithm>
#include <bit>

#include "select/network.hpp"
#include "select/order.hpp"
#include "select/short_rows.hpp"

namespace tonari {
namespace {

template <class Key, bool COUNT>
class BitonicRows {
 public:
  explicit BitonicRows(const SelectTask& task) : task_(task), reader_(task) {}

  std::int64_t select(std::int64_t begin, std::int64_t end) {
    if constexpr (!COUNT) {
      using Short = ShortRows<Key>;
      if (task_.n <= Short::kLongest && end - begin >= Short::kLeastRows) return Short(task_).select(begin, end);
    }
    std::int64_t nan_row = -1;
    for (std::int64_t row = begin; row < end; ++row) {
      select_row(row);
      if (reader_.saw_nan() && nan_row < 0) nan_row = row;
    }
    if constexpr (COUNT) task_.counters->lanes = 1;
    return nan_row;
  }

 private:
  using E = SortLanes<Key>;
  static constexpr std::int64_t kLeast = 64;  // registers that are sorted together if runs are shorter

  void select_row(std::int64_t row) {
    const std::int64_t length = task_.length(row), wanted = std::min(task_.k, length);
    const std::int64_t run = ceiled(wanted), registers = ceiled((length + kWordLanes - 1) / kWordLanes);
    // One run per lane, or runs over several lanes if a run is already most of the row.
    const std::int64_t lane_run = std::min(run, registers), block = std::min(std::max(run, kLeast), registers);
    E *kept = kept_room_.get(lane_run), *fresh = fresh_room_.get(block);
    for (std::int64_t first = 0; first < length; first += block * kWordLanes) {
      read_block(row, first, std::min(block * kWordLanes, length - first), fresh, block);
      sort_lanes(fresh, block, lane_run);
      for (std::int64_t at = 0; at < block; at += lane_run) {
        if (first == 0 && at == 0) {
          std::copy(fresh, fresh + lane_run, kept);
        } else {
          keep_smaller(kept, fresh + at, lane_run);
        }
      }
    }
    if (length > 0) join_runs<1>(kept, lane_run, run / lane_run);
    Word<Key>* words = words_.get(wanted);
    const int shift = std::countr_zero(static_cast<std::uint64_t>(lane_run));
    for (std::int64_t a = 0; a < wanted; ++a) words[a] = kept[a & (lane_run - 1)].get(a >> shift);
    write_row<Key>(task_, row, words, wanted);
  }

  static std::int64_t ceiled(std::int64_t count) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)));
  }

  void read_block(std::int64_t row, std::int64_t first, std::int64_t count, E* out, std::int64_t registers) {
    const std::int64_t size = registers * kWordLanes;
    Key* scratch = scratch_room_.get(size);
    const Key* keys = reader_.read(row, first, count, scratch);
    const auto column = static_cast<std::int32_t>(first);
    const std::int64_t whole = count / kWordLanes;
    for (std::int64_t r = 0; r < whole; ++r) out[r].set(keys + r * kWordLanes, column + r * kWordLanes);
    for (std::int64_t i = whole * kWordLanes; i < size; ++i) {
      const bool real = i < count;
      out[i / kWordLanes].set(i % kWordLanes,
                              real ? pack_word(keys[i], column + static_cast<std::int32_t>(i)) : last_word<Key>());
    }
  }

  // Merges lanes into runs of as many lanes as K needs, then all runs into one.
  template <int LANES>
  static void join_runs(E* kept, std::int64_t length, std::int64_t lanes) {
    if (lanes == LANES) {
      merge_lanes<1>(kept, length, LANES);
      fold_runs<LANES, LANES>(kept, length);
    } else if constexpr (2 * LANES <= kWordLanes) {
      join_runs<2 * LANES>(kept, length, lanes);
    }
  }
  // Merges runs whose lanes differ in bit BIT, then in the next bit; both runs of a pair end up with the merged one.
  template <int LANES, int BIT>
  static void fold_runs(E* kept, std::int64_t length) {
    if constexpr (BIT < kWordLanes) {
      constexpr int flip = (LANES - 1) | BIT;
      for (std::int64_t i = 0; i < (length + 1) / 2; ++i) {
        E &front = kept[i], &back = kept[length - 1 - i];
        E from_back = back.template flipped<flip>(), from_front = front.template flipped<flip>();
        E::order(front, from_back);
        if (length > 1) E::order(back, from_front);
      }
      if constexpr (LANES > 1) clean_lanes<LANES / 2>(kept, length);
      clean_halves(kept, length, length / 2);
      fold_runs<LANES, 2 * BIT>(kept, length);
    }
  }

  const SelectTask& task_;
  KeyReader<Key> reader_;
  Room<E> kept_room_, fresh_room_;
  Room<Key> scratch_room_;
  Room<Word<Key>> words_;
};

}  // namespace
}  // namespace tonari
