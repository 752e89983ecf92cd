// Buffered Search (tang2015 III-D) around any queue of W lanes: values below the head wait in a buffer per lane until
// many lanes have something to insert.
//
//   none     a value is inserted at once; lanes without one wait
//   own      a lane whose buffer is full empties only that buffer
//   full     the first full buffer makes all lanes empty theirs together: entry 0 of all lanes, entry 1, ...
//   sorted   the same after sorting each buffer, so that the smallest go in first and rule out others
//
// Every entry is compared with the head again when its buffer is emptied.
#pragma once

#include "core/room.hpp"
#include "select/lane_rows.hpp"
#include "select/reverse_merge.hpp"

namespace tonari {
namespace {

// Appends the keys whose bits are set, with indices from `first`. The outputs need room for W entries in any case.
template <class Key>
[[gnu::always_inline]] inline void append_set(std::uint32_t bits, const Key* keys, Key first, Key* to_keys,
                                              Key* to_indices) {
  if constexpr (kCompresses) {
    compress(to_keys, bits, Register<Key>::load(keys));
    compress(to_indices, bits, Register<Key>::numbers() + first);
  } else {
    for (; bits != 0; bits &= bits - 1) {
      const int column = std::countr_zero(bits);
      *to_keys++ = keys[column];
      *to_indices++ = first + static_cast<Key>(column);
    }
  }
}

template <class Queue>
class Buffered {
 public:
  using Key = typename Queue::Key;
  static constexpr int W = kWidth<Key>;

  // A row offers at most n values at a time, so a buffer with room for more never becomes full.
  Buffered(const SelectTask& task, Queue& queue)
      : queue_(queue),
        buffering_(task.options.buffer),
        size_(std::min(task.options.buffer_size, task.n + 1)),
        slots_(room_for(size_)),
        keys_(room_.get(4 * slots_ * W)),
        indices_(keys_ + slots_ * W),
        column_keys_(indices_ + slots_ * W),
        column_indices_(column_keys_ + slots_ * W) {
    for (std::int64_t& count : counts_) count = 0;
  }

  // Starts the next W rows; `lanes` are the lanes that have a row.
  void open(const LaneMask<Key>& lanes) { lanes_ = lanes; }

  // Offers x to the queues of lanes `who`.
  void offer(const Entries<Key>& x, LaneMask<Key> who) {
    who = who & before(x, queue_.heads());
    if (!any(who)) return;
    if (buffering_ == Buffering::none) {
      queue_.insert(x, who, lanes_);
      heads_moved_ = true;
      return;
    }
    alignas(64) Key keys[W], indices[W];
    x.store(keys, indices);
    std::uint32_t full = 0;
    for (std::uint32_t lanes = bits(who); lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      const std::int64_t at = lane * slots_ + counts_[lane]++;
      keys_[at] = keys[lane];
      indices_[at] = indices[lane];
      if (counts_[lane] == size_) full |= 1u << lane;
    }
    if (full != 0) empty(full);
  }

  // Offers the chunk of columns that was read from column `first` on. Indices ascend, so an entry whose key equals the
  // head's is not smaller, unless the head is still missing.
  void offer_chunk(LaneRows<Key>& rows, std::int64_t first) {
    int longest = 0;
    for (int lane = 0; lane < W; ++lane) longest = std::max(longest, rows.count(lane));
    const int blocks = (longest + W - 1) / W;
    for (int lane = 0; lane < W; ++lane) find_candidates(rows, lane, 0, blocks);
    heads_moved_ = false;
    for (int block = 0; block < blocks; ++block) {
      std::uint32_t columns = columns_of(block);
      if (columns == 0) continue;
      if (heads_moved_) {
        for (int lane = 0; lane < W; ++lane) find_candidates(rows, lane, block, block + 1);
        columns = columns_of(block);
        if (columns == 0) continue;
      }
      if (has_room(block)) {
        append_block(rows, block, first);
      } else {
        offer_columns(rows, block, first, columns);
      }
    }
  }

  // Empties all buffers after the last column.
  void drain() {
    std::uint32_t left = 0;
    for (int lane = 0; lane < W; ++lane) left |= (counts_[lane] > 0 ? 1u : 0u) << lane;
    if (left != 0) empty(left);
  }

  std::int64_t flushes() const { return flushes_; }

 private:
  static constexpr int kBlocks = LaneRows<Key>::kChunk / W;

  static std::int64_t power_of_two(std::int64_t at_least) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(at_least)));
  }
  // A power of two, for sorting, plus W for appending.
  static std::int64_t room_for(std::int64_t size) { return power_of_two(std::max<std::int64_t>(size, W)) + W; }

  // Sets the bits of the columns that are candidates of the lane, for some blocks of W columns.
  void find_candidates(const LaneRows<Key>& rows, int lane, int begin, int end) {
    const bool missing = queue_.index(0, lane) == kNoIndex;
    const Lanes<Key> head = queue_.key(0, lane);
    const Key* keys = rows.keys(lane);
    for (int block = begin; block < end; ++block) {
      std::uint32_t below = bits(Lanes<Key>::load(keys + block * W) < head);
      if (missing) {
        const int present = std::clamp(rows.count(lane) - block * W, 0, W);
        below = (1u << present) - 1;
      }
      candidates_[block][lane] = static_cast<std::uint16_t>(below);
    }
  }
  std::uint32_t columns_of(int block) const {
    std::uint32_t columns = 0;
    for (int lane = 0; lane < W; ++lane) columns |= candidates_[block][lane];
    return columns;
  }
  // Whether every buffer has room for the candidates of this block.
  bool has_room(int block) const {
    if (buffering_ == Buffering::none) return false;
    std::int64_t most = 0;
    for (int lane = 0; lane < W; ++lane) most = std::max(most, counts_[lane] + std::popcount(candidates_[block][lane]));
    return most < size_;
  }
  void append_block(const LaneRows<Key>& rows, int block, std::int64_t first) {
    for (int lane = 0; lane < W; ++lane) {
      const std::uint32_t bits = candidates_[block][lane];
      if (bits == 0) continue;
      const std::int64_t at = lane * slots_ + counts_[lane];
      append_set(bits, rows.keys(lane) + block * W, static_cast<Key>(first + block * W), &keys_[at], &indices_[at]);
      counts_[lane] += std::popcount(bits);
    }
  }
  void offer_columns(LaneRows<Key>& rows, int block, std::int64_t first, std::uint32_t columns) {
    const Key* keys = rows.columns(block * W);
    for (; columns != 0; columns &= columns - 1) {
      const int c = std::countr_zero(columns);
      const Lanes<Key> index = static_cast<Key>(first + block * W + c);
      offer({Lanes<Key>::load(keys + c * W), index}, index < rows.lengths());
    }
  }

  // Empties buffers, either because those of `lanes` are full or because all values were read.
  void empty(std::uint32_t lanes) {
    heads_moved_ = true;
    if (buffering_ == Buffering::own) {
      for (; lanes != 0; lanes &= lanes - 1) empty_alone(std::countr_zero(lanes));
    } else {
      empty_together();
    }
  }
  void empty_alone(int lane) {
    ++flushes_;
    const LaneMask<Key> alone = LaneMask<Key>::of(1u << lane);
    for (std::int64_t at = lane * slots_; at < lane * slots_ + counts_[lane]; ++at) {
      insert_smaller({keys_[at], indices_[at]}, alone, alone);
    }
    counts_[lane] = 0;
  }
  void empty_together() {
    ++flushes_;
    std::int64_t most = 0;
    for (std::int64_t count : counts_) most = std::max(most, count);
    const bool sorts = buffering_ == Buffering::sorted;
    const std::int64_t taken = sorts ? power_of_two(most) : most;
    const std::int64_t filled = (taken + W - 1) / W * W;
    for (int lane = 0; lane < W; ++lane) {
      for (std::int64_t at = lane * slots_ + counts_[lane]; at < lane * slots_ + filled; ++at) {
        keys_[at] = kLastKey<Key>;
        indices_[at] = kNoIndex;
      }
      counts_[lane] = 0;
    }
    for (std::int64_t at = 0; at < filled; at += W) {
      transpose(keys_ + at, slots_, column_keys_ + at * W);
      transpose(indices_ + at, slots_, column_indices_ + at * W);
    }
    if (sorts) sort_descending(column_keys_, column_indices_, taken);
    for (std::int64_t j = 0; j < taken; ++j) {
      const bool inserted = insert_smaller(column(sorts ? taken - 1 - j : j), lanes_, lanes_);
      if (sorts && !inserted) return;  // all further entries are larger
    }
  }
  Entries<Key> column(std::int64_t j) const {
    return Entries<Key>::load(column_keys_ + j * W, column_indices_ + j * W);
  }
  // Inserts x in those of the lanes where it is smaller than the head; returns whether there are any.
  bool insert_smaller(const Entries<Key>& x, const LaneMask<Key>& who, const LaneMask<Key>& together) {
    const LaneMask<Key> smaller = who & before(x, queue_.heads());
    if (!any(smaller)) return false;
    queue_.insert(x, smaller, together);
    return true;
  }

  Queue& queue_;
  Buffering buffering_;
  std::int64_t size_, slots_;
  Room<Key> room_;
  Key *keys_, *indices_;                // [lane][slot]
  Key *column_keys_, *column_indices_;  // [entry][lane]
  std::int64_t counts_[W];
  std::uint16_t candidates_[kBlocks][W];
  LaneMask<Key> lanes_{};
  bool heads_moved_ = false;  // whether heads changed since the candidates of the chunk were found
  std::int64_t flushes_ = 0;
};

}  // namespace
}  // namespace tonari
