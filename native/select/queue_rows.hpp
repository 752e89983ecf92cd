// Selects with a queue of W lanes, in W consecutive rows together, with a buffer and a Hierarchical Partition in front
// of the queue if the options say so.
//
// A queue has heads(), key(position, lane), index(position, lane), size(), clear() and insert(x, who, together), which
// inserts x into the queues of lanes `who`, where it is before the head, while lanes `together` run. One that `counts` also
// has updates() and merges().
#pragma once

#include <optional>

#include "core/room.hpp"
#include "select/lane_rows.hpp"
#include "select/order.hpp"
#include "select/partition.hpp"
#include "select/selects.hpp"

namespace tonari {
namespace {

// Offers all values of the rows; returns their number.
template <class Queue, class Key>
std::int64_t offer_values(LaneRows<Key>& rows, Buffered<Queue>& buffered) {
  const std::int64_t longest = rows.longest();
  for (std::int64_t first = 0; first < longest; first += LaneRows<Key>::kChunk) {
    rows.read(first);
    buffered.offer_chunk(rows, first);
  }
  buffered.drain();
  return rows.total();
}

// Writes the answers of all rows from the entries of their lanes.
template <class Queue, class Key>
void finish_rows(const SelectTask& task, const LaneRows<Key>& rows, const Queue& queue, Word<Key>* words) {
  for (int lane = 0; lane < rows.rows(); ++lane) {
    std::int64_t count = 0;
    for (std::int64_t p = 0; p < queue.size(); ++p) {
      const Key index = queue.index(p, lane);
      if (index != kNoIndex) words[count++] = pack_word(queue.key(p, lane), static_cast<std::int32_t>(index));
    }
    finish_row<Key>(task, rows.first_row() + lane, words, count);
  }
}

template <class Queue>
std::int64_t select_with(const SelectTask& task, std::int64_t begin, std::int64_t end) {
  using Key = typename Queue::Key;
  constexpr int W = kWidth<Key>;
  Queue queue(task);
  Buffered<Queue> buffered(task, queue);
  std::optional<Partition<Queue>> partition;
  if (task.options.group > 0 && task.n > task.k) partition.emplace(task, queue.size());
  Room<Word<Key>> words;
  std::int64_t nan_row = -1, examined = 0;
  for (std::int64_t first = begin; first < end; first += W) {
    LaneRows<Key> rows(task, first, end);
    queue.clear();
    buffered.open(LaneMask<Key>::of((1u << rows.rows()) - 1));
    examined += partition ? partition->offer(rows, queue, buffered) : offer_values(rows, buffered);
    finish_rows(task, rows, queue, words.get(queue.size()));
    if (nan_row < 0) nan_row = rows.nan_row();
  }
  if constexpr (Queue::counts) {
    if (task.counters == nullptr) return nan_row;  // null for a method that is used only if it is named (selects.hpp)
    add_updates(*task.counters, queue.updates(), queue.size());
    task.counters->merges += queue.merges();
    task.counters->flushes += buffered.flushes();
    task.counters->examined += examined;
    task.counters->lanes = W;
  }
  return nan_row;
}

}  // namespace
}  // namespace tonari
