// Heap queue (tang2015 III-B): a binary heap of k entries, children 2p + 1 and 2p + 2 of p, the largest at the root.
//
// A smaller value leaves a hole at the root; as long as the larger child is larger than the value, it moves up into the
// hole. Lanes take different paths, so each lane's heap is contiguous, [lane][position] with key and index in one word,
// and lanes sift one after the other instead of gathering and scattering along all paths at once.
#pragma once

#include "core/room.hpp"
#include "select/lanes.hpp"
#include "select/queue_rows.hpp"

namespace tonari {
namespace {

template <class KeyType, bool COUNT>
class HeapQueue {
 public:
  using Key = KeyType;
  static constexpr bool counts = COUNT;
  static constexpr int W = kWidth<Key>;

  explicit HeapQueue(const SelectTask& task)
      : size_(task.k), words_(room_.get(size_ * W)), updates_(updates_room_.get(size_)) {
    for (std::int64_t p = 0; p < size_; ++p) updates_[p] = 0;
  }

  std::int64_t size() const { return size_; }
  void clear() {
    for (std::int64_t i = 0; i < size_ * W; ++i) words_[i] = pack_word(kLastKey<Key>, kNoIndex);
    for (int lane = 0; lane < W; ++lane) set_head(lane);
  }
  Key key(std::int64_t position, int lane) const { return word_key<Key>(words_[lane * size_ + position]); }
  Key index(std::int64_t position, int lane) const { return word_index<Key>(words_[lane * size_ + position]); }
  Entries<Key> heads() const { return Entries<Key>::load(head_keys_, head_indices_); }
  const std::int64_t* updates() const { return updates_; }
  std::int64_t merges() const { return 0; }

  // Inserts x in lanes `who`, where it is before the head.
  void insert(const Entries<Key>& x, const LaneMask<Key>& who, const LaneMask<Key>&) {
    alignas(64) Key keys[W], indices[W];
    x.store(keys, indices);
    for (std::uint32_t lanes = bits(who); lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      sift(words_ + lane * size_, pack_word(keys[lane], static_cast<std::int32_t>(indices[lane])));
      set_head(lane);
    }
  }

 private:
  void sift(Word<Key>* heap, Word<Key> x) {
    std::int64_t hole = 0;
    for (;;) {
      std::int64_t child = 2 * hole + 1;
      if (child >= size_) break;
      if (child + 1 < size_) child += heap[child + 1] > heap[child];
      if (heap[child] <= x) break;
      heap[hole] = heap[child];
      if constexpr (COUNT) ++updates_[hole];
      hole = child;
    }
    heap[hole] = x;
    if constexpr (COUNT) ++updates_[hole];
  }
  void set_head(int lane) {
    head_keys_[lane] = key(0, lane);
    head_indices_[lane] = index(0, lane);
  }

  Room<Word<Key>> room_;
  Room<std::int64_t> updates_room_;
  std::int64_t size_;
  Word<Key>* words_;
  std::int64_t* updates_;
  alignas(64) Key head_keys_[W], head_indices_[W];
};

}  // namespace
}  // namespace tonari
