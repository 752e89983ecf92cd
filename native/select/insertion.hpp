// Insertion queue (tang2015 III-B): k entries sorted descending, the largest at the head (insert_sorted.hpp).
//
// For values in random order, the position of the j-th smallest is updated sum over i = 1 ... n of min(1, j / i) times.
#pragma once

#include "select/insert_sorted.hpp"
#include "select/lane_queue.hpp"
#include "select/queue_rows.hpp"

namespace tonari {
namespace {

template <class Key, bool COUNT>
class InsertionQueue : public LaneQueue<Key> {
 public:
  static constexpr bool counts = COUNT;

  explicit InsertionQueue(const SelectTask& task) : LaneQueue<Key>(task.k) {}

  // Inserts x in lanes `who`, where it is before the head.
  void insert(const Entries<Key>& x, const LaneMask<Key>& who, const LaneMask<Key>&) {
    insert_sorted<COUNT>(this->keys_, this->indices_, this->size_, x, who, this->updates_);
  }
};

}  // namespace
}  // namespace tonari
