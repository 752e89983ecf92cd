// Hierarchical Partition without a queue (tang2015 III-E, algorithm 4), row by row.
//
//   list 0        the values
//   list i + 1    minima of groups of G neighbours of list i, until at most k are left
//   top-down      the k smallest of the top list; in each list below, the k smallest members of the groups just chosen
//
// A group whose minimum is not among the k smallest minima contains no part of the answer. This holds for equal minima
// too, since entries are (key, position) pairs and an earlier group has smaller positions.
#pragma once

#include <algorithm>
#include <cstring>

#include "select/condense.hpp"
#include "select/order.hpp"
#include "select/scan.hpp"

namespace tonari {
namespace {

// The minima of groups of `group` consecutive keys; the last group may be short.
template <std::int64_t GROUP, class Key>
void minima_of(const Key* keys, std::int64_t groups, Key* out) {
  for (std::int64_t g = 0; g < groups; ++g) {
    Key least = keys[g * GROUP];
    for (std::int64_t j = 1; j < GROUP; ++j) least = keys[g * GROUP + j] < least ? keys[g * GROUP + j] : least;
    out[g] = least;
  }
}
template <class Key>
void group_minima(const Key* keys, std::int64_t count, std::int64_t group, Key* out) {
  std::int64_t whole = 0;
  switch (group) {
    case 2: minima_of<2>(keys, whole = count / 2, out); break;
    case 4: minima_of<4>(keys, whole = count / 4, out); break;
    case 8: minima_of<8>(keys, whole = count / 8, out); break;
    case 16: minima_of<16>(keys, whole = count / 16, out); break;
    default: break;
  }
  for (std::int64_t first = whole * group; first < count; first += group) {
    Key least = keys[first];
    for (std::int64_t i = first; i < std::min(first + group, count); ++i) least = keys[i] < least ? keys[i] : least;
    *(out + first / group) = least;
  }
}

template <class Key, bool COUNT>
class HierarchicalRows {
 public:
  explicit HierarchicalRows(const SelectTask& task)
      : task_(task), reader_(task), group_(task.options.group > 0 ? task.options.group : 4) {}

  std::int64_t select(std::int64_t begin, std::int64_t end) {
    std::int64_t nan_row = -1;
    for (std::int64_t row = begin; row < end; ++row) {
      select_row(row);
      if (reader_.saw_nan() && nan_row < 0) nan_row = row;
    }
    if constexpr (COUNT) task_.counters->lanes = 1;
    return nan_row;
  }

 private:
  static constexpr std::int64_t kBlock = 2048;  // number of values that are read together
  static constexpr int kLists = 32;             // no row has more, since a group has at least two members

  void select_row(std::int64_t row) {
    const std::int64_t length = task_.length(row), wanted = std::min(task_.k, length);
    build(row, length);
    const std::int64_t room = std::max(sizes_[top_], std::min(wanted * group_, length)) + kSpill;
    Key* keys = key_room_.get(room);
    std::int32_t *chosen = chosen_room_.get(room), *members = member_room_.get(room);
    std::int64_t count = sizes_[top_];
    for (std::int64_t j = 0; j < count; ++j) chosen[j] = static_cast<std::int32_t>(j);
    for (int list = top_;; --list) {
      if constexpr (COUNT) task_.counters->examined += count;
      read_keys(row, list, chosen, count, keys);
      if (count > wanted) count = condense(keys, chosen, count, wanted, 0).count;
      if (list == 0) break;
      std::int64_t offered = 0;
      for (std::int64_t j = 0; j < count; ++j) {
        const std::int64_t first = chosen[j] * group_, last = std::min(first + group_, sizes_[list - 1]);
        for (std::int64_t m = first; m < last; ++m) members[offered++] = static_cast<std::int32_t>(m);
      }
      std::swap(chosen, members);
      count = offered;
    }
    Word<Key>* words = words_.get(count);
    for (std::int64_t j = 0; j < count; ++j) words[j] = pack_word(keys[j], chosen[j]);
    finish_row<Key>(task_, row, words, count, sorting_);
  }

  // Builds the lists bottom-up. List 0 is not stored.
  void build(std::int64_t row, std::int64_t length) {
    sizes_[0] = length;
    std::int64_t kept = 0;
    for (top_ = 0; sizes_[top_] > task_.k && (task_.options.levels == 0 || top_ < task_.options.levels); ++top_) {
      sizes_[top_ + 1] = (sizes_[top_] + group_ - 1) / group_;
      starts_[top_ + 1] = kept;
      kept += sizes_[top_ + 1];
    }
    if (top_ == 0) {
      reader_.read(row, 0, length, lists_.get(length));  // read only to detect NaN
      return;
    }
    Key* lists = lists_.get(kept);
    read_minima(row, length, lists);
    for (int i = 1; i < top_; ++i) group_minima(lists + starts_[i], sizes_[i], group_, lists + starts_[i + 1]);
  }

  void read_keys(std::int64_t row, int list, const std::int32_t* chosen, std::int64_t count, Key* keys) {
    if (list == 0) {
      with_format<Key>(task_, [&](auto format) {
        keys_of<decltype(format)>(row_of<decltype(format)>(task_, row), chosen, count, keys);
      });
    } else {
      const Key* entries = lists_.get(0) + starts_[list];
      for (std::int64_t j = 0; j < count; ++j) keys[j] = entries[chosen[j]];
    }
  }

  // Computes list 1 from blocks of the row that end with a group, or from parts of a group that is larger than a block.
  void read_minima(std::int64_t row, std::int64_t length, Key* minima) {
    Key block[kBlock];
    const std::int64_t step = group_ <= kBlock ? kBlock / group_ * group_ : kBlock;
    for (std::int64_t first = 0; first < length;) {
      const std::int64_t group_end = group_ <= kBlock ? length : (first / group_ + 1) * group_;
      const std::int64_t count = std::min({step, group_end - first, length - first});
      const Key* keys = reader_.read(row, first, count, block);
      if (first % group_ == 0) {
        group_minima(keys, count, group_, minima + first / group_);
      } else {
        Key least;
        group_minima(keys, count, group_, &least);
        minima[first / group_] = std::min(minima[first / group_], least);
      }
      first += count;
    }
  }

  const SelectTask& task_;
  KeyReader<Key> reader_;
  const std::int64_t group_;
  std::int64_t sizes_[kLists], starts_[kLists];  // the size of each list and its start in memory
  int top_ = 0;
  Room<Key> lists_, key_room_;
  Room<std::int32_t> chosen_room_, member_room_;
  Room<Word<Key>> words_, sorting_;
};

}  // namespace
}  // namespace tonari
