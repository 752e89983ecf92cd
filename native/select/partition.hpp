// Hierarchical Partition (tang2015 III-E, algorithm 4) in front of any queue of W lanes.
//
//   list 0      the values
//   list i + 1  the smallest of every G consecutive entries of list i, until at most k are left: about n / G^i entries
//
// Top down: the k smallest of the top list are found first; then, list by list, the k smallest members of the groups
// that were found. If a group is not among the k smallest, k groups are before it, and each of them has a member that
// is before all members of this group. This holds for ties too, since a group with a smaller number has members with
// smaller indices.
#pragma once

#include "core/room.hpp"
#include "select/buffered.hpp"

namespace tonari {
namespace {

// The lists above the values of rows, and the members of their groups; independent of the queue.
template <class Key>
class GroupLists {
 public:
  static constexpr int W = kWidth<Key>;

  GroupLists(const SelectTask& task, std::int64_t queue_size)
      : reader_(task),
        group_(std::min(task.options.group, task.n)),
        plan_(plan_for(task, group_)),
        lists_(room_.get((plan_.entries + queue_size + group_) * W + group_)),
        groups_(lists_ + plan_.entries * W),
        members_(groups_ + queue_size * W),
        read_(members_ + group_ * W) {}

  int lists() const { return plan_.lists; }  // number of lists above the values
  Key* groups() { return groups_; }          // room for the groups that were found, [position][lane]
  const Key* list(int i) const { return &lists_[plan_.starts[i - 1] * W]; }
  const Key* members() const { return members_; }
  // The number of entries in list i above a row of this length.
  std::int64_t size_of(int i, std::int64_t length) const {
    for (; i > 0; --i) length = (length + group_ - 1) / group_;
    return length;
  }

  void build(LaneRows<Key>& rows) {
    const std::int64_t longest = rows.longest();
    Minima of_values(group_, entries(1));
    for (std::int64_t first = 0; first < longest; first += LaneRows<Key>::kChunk) {
      rows.read(first);
      const std::int64_t count = std::min<std::int64_t>(LaneRows<Key>::kChunk, longest - first);
      for (std::int64_t c = 0; c < count; c += W) of_values.add(rows.columns(c), std::min<std::int64_t>(W, count - c));
    }
    of_values.finish();
    for (int i = 1; i < plan_.lists; ++i) {
      Minima of_list(group_, entries(i + 1));
      of_list.add(entries(i), size_of(i, longest));
      of_list.finish();
    }
  }

  void fetch_members(const LaneRows<Key>& rows, const Key* groups) const {
    for (int lane = 0; lane < W; ++lane) {
      if (groups[lane] != kNoIndex) rows.fetch(lane, groups[lane] * group_, group_);
    }
  }

  // Gathers the members, in list i, of one group per lane. Writes the number of the first member and the number of
  // members of each lane; returns the largest number of members.
  std::int64_t gather(const LaneRows<Key>& rows, int i, const Key* groups, Key (&first)[W], Key (&counts)[W]) {
    std::int64_t most = 0;
    for (int lane = 0; lane < W; ++lane) {
      const bool exists = groups[lane] != kNoIndex;
      const std::int64_t at = exists ? groups[lane] * group_ : 0;
      const std::int64_t count = exists ? std::min(group_, size_of(i, rows.length(lane)) - at) : 0;
      if (i > 0) {
        for (std::int64_t j = 0; j < count; ++j) members_[j * W + lane] = list(i)[(at + j) * W + lane];
      } else if (count > 0) {
        const Key* keys = reader_.read(rows.first_row() + lane, at, count, read_);
        for (std::int64_t j = 0; j < count; ++j) members_[j * W + lane] = keys[j];
      }
      first[lane] = static_cast<Key>(at);
      counts[lane] = static_cast<Key>(count);
      most = std::max(most, count);
    }
    return most;
  }

 private:
  struct Plan {
    int lists = 0;
    std::int64_t starts[32];  // where list i + 1 starts, in entries; each list at most halves the one below
    std::int64_t entries = 0;
  };
  static Plan plan_for(const SelectTask& task, std::int64_t group) {
    Plan plan;
    for (std::int64_t size = task.n; size > task.k; ++plan.lists) {
      if (plan.lists > 0 && plan.lists == task.options.levels) break;
      size = (size + group - 1) / group;
      plan.starts[plan.lists] = plan.entries;
      plan.entries += size;
    }
    return plan;
  }
  Key* entries(int i) { return &lists_[plan_.starts[i - 1] * W]; }

  // Reads the columns of a list one after the other and writes the minima of its groups into the next list.
  class Minima {
   public:
    Minima(std::int64_t group, Key* out) : group_(group), missing_(group), out_(out) {}
    void add(const Key* columns, std::int64_t count) {
      while (count > 0) {
        const std::int64_t now = std::min(count, missing_);
        for (std::int64_t c = 0; c < now; ++c) {
          least_ = min(Lanes<Key>::load(columns + c * W), least_);
        }
        columns += now * W;
        count -= now;
        missing_ -= now;
        if (missing_ == 0) close();
      }
    }
    void finish() {
      if (missing_ < group_) close();
    }

   private:
    void close() {
      least_.store(out_);
      least_ = kLastKey<Key>;
      missing_ = group_;
      out_ += W;
    }
    std::int64_t group_, missing_;  // missing_: entries until the group is complete
    Key* out_;
    Lanes<Key> least_ = kLastKey<Key>;
  };

  KeyReader<Key> reader_;  // reads members, whose NaNs are already known
  std::int64_t group_;
  Plan plan_;
  Room<Key> room_;
  Key* lists_;    // list 1, list 2, ..., each [entry][lane]
  Key* groups_;   // [position][lane]
  Key* members_;  // [member][lane]
  Key* read_;     // members of one lane
};

template <class Queue>
class Partition {
 public:
  using Key = typename Queue::Key;
  static constexpr int W = kWidth<Key>;

  Partition(const SelectTask& task, std::int64_t queue_size) : lists_(task, queue_size) {}

  // Offers all entries that may be among the k smallest of the rows; returns their number.
  std::int64_t offer(LaneRows<Key>& rows, Queue& queue, Buffered<Queue>& buffered) {
    lists_.build(rows);
    Key* const groups = lists_.groups();
    std::int64_t offered = offer_top(rows, buffered);
    for (int list = lists_.lists() - 1; list >= 0; --list) {
      for (std::int64_t p = 0; p < queue.size(); ++p) {
        for (int lane = 0; lane < W; ++lane) groups[p * W + lane] = queue.index(p, lane);
      }
      queue.clear();
      for (std::int64_t p = 0; p < queue.size(); ++p) {
        if (list == 0 && p + kAhead < queue.size()) lists_.fetch_members(rows, &groups[(p + kAhead) * W]);
        offered += offer_members(rows, list, &groups[p * W], buffered);
      }
      buffered.drain();
    }
    return offered;
  }

 private:
  static constexpr int kAhead = 4;  // positions whose groups are prefetched

  std::int64_t offer_top(const LaneRows<Key>& rows, Buffered<Queue>& buffered) {
    const int top = lists_.lists();
    alignas(64) Key first[W] = {}, sizes[W];
    for (int lane = 0; lane < W; ++lane) sizes[lane] = static_cast<Key>(lists_.size_of(top, rows.length(lane)));
    const std::int64_t offered =
        offer_entries(lists_.list(top), lists_.size_of(top, rows.longest()), first, sizes, buffered);
    buffered.drain();
    return offered;
  }

  // Offers the members, in list i, of one group per lane.
  std::int64_t offer_members(const LaneRows<Key>& rows, int i, const Key* groups, Buffered<Queue>& buffered) {
    alignas(64) Key first[W], counts[W];
    const std::int64_t most = lists_.gather(rows, i, groups, first, counts);
    return offer_entries(lists_.members(), most, first, counts, buffered);
  }

  // Offers entries [entry][lane], up to `most` of a lane; the entries of a lane are numbered from its first number on.
  std::int64_t offer_entries(const Key* entries, std::int64_t most, const Key (&first)[W], const Key (&counts)[W],
                             Buffered<Queue>& buffered) {
    std::int64_t offered = 0;
    for (Key count : counts) offered += count;
    for (std::int64_t j = 0; j < most; ++j) {
      const Lanes<Key> index = static_cast<Key>(j);
      buffered.offer({Lanes<Key>::load(entries + j * W), Lanes<Key>::load(first) + index},
                     index < Lanes<Key>::load(counts));
    }
    return offered;
  }

  GroupLists<Key> lists_;
};

}  // namespace
}  // namespace tonari
