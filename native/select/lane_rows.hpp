// The keys of W rows, one chunk of columns at a time: [lane][column] as they are read, [column][lane] on demand.
//
// A lane without a row has length 0; beyond its length a lane is padded with the last key.
#pragma once

#include <algorithm>

#include "select/lanes.hpp"

namespace tonari {
namespace {

template <class Key>
class LaneRows {
 public:
  static constexpr int W = kWidth<Key>;
  // number of columns; 16 lanes just fit into the L1 cache
  static constexpr int kChunk = 2048 / static_cast<int>(sizeof(Key));

  LaneRows(const SelectTask& task, std::int64_t first_row, std::int64_t end_row)
      : task_(task),
        reader_(task),
        first_row_(first_row),
        rows_(std::min<std::int64_t>(W, end_row - first_row)),
        bytes_(value_bytes(task.type)) {
    for (int lane = 0; lane < W; ++lane) {
      lengths_[lane] = lane < rows_ ? static_cast<Key>(task.length(first_row + lane)) : 0;
    }
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t first_row() const { return first_row_; }
  std::int64_t length(int lane) const { return lengths_[lane]; }
  Lanes<Key> lengths() const { return Lanes<Key>::load(lengths_); }
  std::int64_t longest() const { return *std::max_element(lengths_, lengths_ + W); }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (Key length : lengths_) sum += length;
    return sum;
  }

  // Reads columns [first, first + kChunk). Not inlined, like columns(), because every kind of queue calls it.
  [[gnu::noinline]] void read(std::int64_t first) {
    for (int lane = 0; lane < W; ++lane) {
      counts_[lane] = static_cast<int>(std::clamp<std::int64_t>(lengths_[lane] - first, 0, kChunk));
      Key* const keys = keys_ + lane * kChunk;
      const int ahead = lane + kAhead;
      ahead < W ? fetch(ahead, first, kChunk) : fetch(ahead - W, first + kChunk, kChunk);
      if (counts_[lane] > 0) {
        const Key* found = reader_.read(first_row_ + lane, first, counts_[lane], keys);
        if (found != keys) std::memcpy(keys, found, static_cast<std::size_t>(counts_[lane]) * sizeof(Key));
        if (reader_.saw_nan() && (nan_row_ < 0 || first_row_ + lane < nan_row_)) nan_row_ = first_row_ + lane;
      }
      std::fill(keys + counts_[lane], keys + kChunk, kLastKey<Key>);
    }
  }

  // Access to the current chunk: a lane's keys, their number, and W columns from column `at` on.
  const Key* keys(int lane) const { return keys_ + lane * kChunk; }
  int count(int lane) const { return counts_[lane]; }
  [[gnu::noinline]] const Key* columns(std::int64_t at) {
    transpose(keys_ + at, kChunk, columns_);
    return columns_;
  }

  // Prefetches columns [first, first + most) of a lane. Always inlined, because GCC drops a call as if it had no
  // effect.
  [[gnu::always_inline]] void fetch(int lane, std::int64_t first, std::int64_t most) const {
    const std::int64_t count = std::min(lengths_[lane] - first, most);
    const char* from = static_cast<const char*>(task_.values) + ((first_row_ + lane) * task_.stride + first) * bytes_;
    for (std::int64_t at = 0; at < count * bytes_; at += 64) __builtin_prefetch(from + at);
  }

  // The first row read so far that has a NaN, or -1.
  std::int64_t nan_row() const { return nan_row_; }

 private:
  // number of lanes to prefetch ahead, since the processor detects no stream across lanes
  static constexpr int kAhead = 2;

  alignas(64) Key keys_[W * kChunk];
  alignas(64) Key columns_[W * W];
  alignas(64) Key lengths_[W];
  int counts_[W];
  const SelectTask& task_;
  KeyReader<Key> reader_;
  std::int64_t first_row_, rows_, bytes_;
  std::int64_t nan_row_ = -1;
};

}  // namespace
}  // namespace tonari
