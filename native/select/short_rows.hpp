// Truncated bitonic sort (bitonic.hpp) of short rows, several at a time: each lane of a register holds an entry of another
// row, so that no comparison moves lanes, and reading and writing are shared too.
//
//   W rows -> keys -> columns (tiles are transposed) -> for as many rows as a register has lanes:
//
//   entry c of every row is register c;   runs of K registers are sorted;   pairs of runs merge, the upper half is dropped
//
// For k = 10 of 50 columns: four runs of 16 take 320 comparisons, three merges 144.
#pragma once

#include <algorithm>
#include <bit>

#include "select/lanes.hpp"
#include "select/network.hpp"
#include "select/order.hpp"

namespace tonari {
namespace {

// Merges two runs of each lane: the smaller half replaces `kept`, the upper half is dropped.
template <class Key>
void keep_smaller(SortLanes<Key>* kept, const SortLanes<Key>* fresh, std::int64_t length) {
  for (std::int64_t i = 0; i < length; ++i) {
    SortLanes<Key> other = fresh[length - 1 - i];
    SortLanes<Key>::order(kept[i], other);
  }
  clean_halves(kept, length, length / 2);
}

template <class Key>
class ShortRows {
 public:
  // Keys and entries of a tile stay in the caches of a core. A few rows are faster one after the other.
  static constexpr std::int64_t kLongest = 512, kLeastRows = 4;

  explicit ShortRows(const SelectTask& task)
      : task_(task),
        reader_(task),
        run_(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(task.k)))),
        registers_(std::max(up(task.n, run_), task.n < 8 ? run_ : up(task.n, 8))) {}

  // Selects in rows [begin, end); returns the first of them that has a NaN, or -1.
  std::int64_t select(std::int64_t begin, std::int64_t end) {
    const std::int64_t width = up(task_.n, W);
    Key* const columns = columns_.get(width * W);
    std::int64_t nan_row = -1;
    for (std::int64_t first = begin; first < end; first += W) {
      const std::int64_t rows = std::min<std::int64_t>(W, end - first);
      const Key* keys = read(first, rows);
      if (reader_.saw_nan() && nan_row < 0) nan_row = row_with_nan(first);
      for (std::int64_t c = 0; c < width; c += W) transpose(keys + c, task_.n, columns + c * W);
      for (std::int64_t low = 0; low < rows; low += kWordLanes) {
        sort(columns + low);
        write(first + low, std::min<std::int64_t>(kWordLanes, rows - low));
      }
    }
    return nan_row;
  }

 private:
  using E = SortLanes<Key>;
  static constexpr int W = kWidth<Key>;

  static std::int64_t up(std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; }

  // The keys of W rows, [row][column] without gaps; whatever lies beyond a row's length comes after its values.
  const Key* read(std::int64_t first, std::int64_t rows) {
    const std::int64_t n = task_.n, all = W * n;
    Key* const keys = keys_.get(all + W);
    const bool adjacent = task_.stride == n && task_.lengths == nullptr;
    const std::int64_t parts = adjacent ? 1 : rows;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t count = adjacent ? rows * n : task_.length(first + part);
      Key* const to = keys + part * n;
      const Key* found = count == 0 ? to : reader_.read(first + part, 0, count, to);
      if (found != to) std::memcpy(to, found, static_cast<std::size_t>(count) * sizeof(Key));
      if (!adjacent) std::fill(to + count, to + n, kLastKey<Key>);
    }
    std::fill(keys + rows * n, keys + all + W, kLastKey<Key>);  // is transposed, but not used
    return keys;
  }

  std::int64_t row_with_nan(std::int64_t row) {
    Key* const keys = nan_keys_.get(task_.n);
    for (;; ++row) {
      if (task_.length(row) > 0) reader_.read(row, 0, task_.length(row), keys);
      if (reader_.saw_nan()) return row;
    }
  }

  void sort(const Key* columns) {
    E* const entries = entries_.get(registers_);
    for (std::int64_t c = 0; c < task_.n; ++c) entries[c].set_column(columns + c * W, static_cast<std::int32_t>(c));
    for (std::int64_t c = task_.n; c < registers_; ++c) entries[c].set_last();
    sort_lanes(entries, registers_, run_);
    for (std::int64_t step = run_; step < registers_; step *= 2) {
      for (std::int64_t at = 0; at + step < registers_; at += 2 * step) {
        keep_smaller(entries + at, entries + at + step, run_);
      }
    }
  }

  void write(std::int64_t first, std::int64_t rows) {
    const E* const entries = entries_.get(registers_);
    Word<Key>* const words = words_.get(task_.k);
    for (std::int64_t lane = 0; lane < rows; ++lane) {
      const std::int64_t wanted = std::min(task_.k, task_.length(first + lane));
      for (std::int64_t j = 0; j < wanted; ++j) words[j] = entries[j].get(lane);
      write_row<Key>(task_, first + lane, words, wanted);
    }
  }

  const SelectTask& task_;
  KeyReader<Key> reader_;
  const std::int64_t run_, registers_;  // K, and the number of registers per row, a multiple of K
  Room<Key> keys_, columns_, nan_keys_;
  Room<E> entries_;
  Room<Word<Key>> words_;
};

}  // namespace
}  // namespace tonari
