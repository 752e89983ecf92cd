// Merge queue (tang2015 III-C, algorithm 2): levels of m, m, 2m, 4m, ... positions, each sorted descending. Their heads
// descend too, so position 0 has the largest entry.
//
// A value is inserted into the first level, as into an insertion queue of size m. If a level's head is now smaller than
// the next level's, the two are merged with all levels before them; if it is not, the update ends (lazy update). Line 5
// of algorithm 2, as printed, tests the opposite; the text around it describes what is done here.
#pragma once

#include "select/insert_sorted.hpp"
#include "select/lane_queue.hpp"
#include "select/queue_rows.hpp"
#include "select/reverse_merge.hpp"

namespace tonari {
namespace {

template <class Key, bool COUNT>
class MergeQueue : public LaneQueue<Key> {
 public:
  static constexpr bool counts = COUNT;

  explicit MergeQueue(const SelectTask& task)
      : LaneQueue<Key>(size_for(task)), m_(task.options.m), aligned_(task.options.aligned) {}

  // Inserts x in lanes `who`, where it is before the head. If aligned, all lanes of `together` merge when one of them
  // must.
  [[gnu::always_inline]] void insert(const Entries<Key>& x, const LaneMask<Key>& who, const LaneMask<Key>& together) {
    Key* const keys = this->keys_;
    Key* const indices = this->indices_;
    std::int64_t* const updates = this->updates_;
    insert_sorted<COUNT>(keys, indices, m_, x, who, updates);
    LaneMask<Key> merging = together;
    for (std::int64_t previous = 0, next = m_; next < this->size_; previous = next, next *= 2) {
      const LaneMask<Key> broken = merging & before(at(previous), at(next));
      if (!any(broken)) return;
      if (!aligned_) merging = broken;
      if constexpr (COUNT) this->merges_ += std::popcount(bits(merging));
      reverse_merge<true, COUNT>(keys, indices, 2 * next, merging, updates);
    }
  }

 private:
  static std::int64_t size_for(const SelectTask& task) {
    std::int64_t size = task.options.m;
    while (size < task.k) size *= 2;
    return size;
  }
  Entries<Key> at(std::int64_t position) const {
    return Entries<Key>::load(this->keys_ + position * kWidth<Key>, this->indices_ + position * kWidth<Key>);
  }

  std::int64_t m_;
  bool aligned_;
};

}  // namespace
}  // namespace tonari
