// Quick multi-select (komarov2014, "GPU-Based Quick Multi-Select"), row by row.
//
//   partition by a pivot in one read:   left: no larger than the pivot     right: larger
//   left has more than wanted: go on with the left; else all of it belongs to the answer: go on with the right
//
// The ballot that places the 32 elements of a warp is a compaction of registers here. Left parts are appended to the
// other of two arrays, right parts are compacted in place. Entries that belong to the answer are not moved again. The
// paper keeps their ranges on a stack; here they are joined at the front of each array:
//
//   array 0   | answer | right ->          both parts keep the order of columns, so that comparing with a pivot
//   array 1   | answer | left  ->          (key, column) is a comparison of keys
//
// The pivot is the sample that is expected to have slightly more entries on its left than are wanted. If many passes
// are needed nevertheless, the rest is condensed by halving, whose time does not depend on the data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "select/condense.hpp"
#include "select/order.hpp"
#include "select/scatter.hpp"

namespace tonari {
namespace {

template <class Key, bool COUNT>
class QuickRows {
 public:
  explicit QuickRows(const SelectTask& task) : task_(task), reader_(task) {}

  std::int64_t select(std::int64_t begin, std::int64_t end) {
    for (Part& array : arrays_) {
      array.keys = array.key_room.get(task_.n + kSpill);
      array.columns = array.column_room.get(task_.n + kSpill);
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
  static constexpr std::int64_t kBlock = 512;   // number of keys that are converted together
  static constexpr std::int64_t kSamples = 64;  // values from which a pivot is chosen
  static constexpr std::int64_t kFew = 64;      // this number of entries or fewer are sorted without another partition
  static constexpr std::int64_t kReads = 4;     // halving replaces partitions after this multiple of the row's length

  struct Part {
    Room<Key> key_room;
    Room<std::int32_t> column_room;
    Key* keys = nullptr;
    std::int32_t* columns = nullptr;
    std::int64_t answer = 0;  // number of entries at the front that belong to the answer
  };

  void select_row(std::int64_t row) {
    const std::int64_t length = task_.length(row);
    std::int64_t wanted = std::min(task_.k, length);
    Part *active = arrays_, *other = arrays_ + 1;  // the undecided entries follow the answer in `active`
    active->answer = other->answer = 0;
    std::int64_t count = length, examined = 0;
    const auto enough = [&] { return count <= std::max(kFew, wanted + wanted / 2); };
    const auto decide = [&](std::int64_t left) {  // after a partition: left is in `other`, right in `active`
      if (left > wanted) {
        std::swap(active, other);
        count = left;
      } else {
        other->answer += left;
        wanted -= left;
        count -= left;
      }
    };
    if (enough()) {
      read_all(row, length, *active);
    } else {
      const std::int64_t left = split_row(row, length, wanted, *other, *active);
      examined = length;
      decide(left);
    }
    for (std::int64_t pass = 1; !enough(); ++pass) {
      Key* keys = active->keys + active->answer;
      std::int32_t* columns = active->columns + active->answer;
      if (examined + count > kReads * length) {
        count = condense(keys, columns, count, wanted, 0).count;
        break;
      }
      examined += count;
      decide(split_part(row + pass, keys, columns, count, wanted, *other));
    }
    Word<Key>* words = words_.get(length);
    std::int64_t packed = 0;
    active->answer += count;
    for (const Part& part : arrays_) {
      for (std::int64_t i = 0; i < part.answer; ++i) words[packed++] = pack_word(part.keys[i], part.columns[i]);
    }
    if constexpr (COUNT) task_.counters->examined += examined;
    finish_row<Key>(task_, row, words, packed, sorting_);
  }

  void read_all(std::int64_t row, std::int64_t length, Part& to) {
    const Key* read = reader_.read(row, 0, length, to.keys);
    if (read != to.keys) std::memcpy(to.keys, read, static_cast<std::size_t>(length) * sizeof(Key));
    for (std::int64_t i = 0; i < length; ++i) to.columns[i] = static_cast<std::int32_t>(i);
  }

  // Samples are at scattered places of the range, each in a part of its own.
  static std::int64_t place_of(std::int64_t seed, std::int64_t j, std::int64_t count) {
    const std::int64_t from = j * count / kSamples, to = (j + 1) * count / kSamples;
    return from + scattered(seed * kSamples + j, to - from);
  }
  static Pair<Key> pivot_of(const Key* keys, const std::int32_t* places, std::int64_t wanted, std::int64_t count) {
    const double part = static_cast<double>(wanted) / static_cast<double>(count), mean = kSamples * part;
    const double deviation = std::sqrt(mean * (1 - part));
    const auto rank = static_cast<std::int64_t>(mean + 2 * deviation + 1.5);
    return kth_smallest(keys, places, kSamples, std::min(rank, kSamples));
  }

  // The first partition, which reads the row itself. Returns the number of left entries; the pivot is one of them.
  std::int64_t split_row(std::int64_t row, std::int64_t length, std::int64_t wanted, Part& left, Part& right) {
    Key keys[kSamples];
    std::int32_t places[kSamples];
    for (std::int64_t j = 0; j < kSamples; ++j) {
      const std::int64_t at = place_of(row, j, length);
      keys[j] = *reader_.read(row, at, 1, keys + j);
      places[j] = static_cast<std::int32_t>(at);
    }
    const Pair<Key> pivot = pivot_of(keys, places, wanted, length);
    Key block[kBlock];
    std::int64_t taken = 0;
    for (std::int64_t first = 0; first < length; first += kBlock) {
      const std::int64_t count = std::min(kBlock, length - first), rest = first - taken;
      const Key* read = reader_.read(row, first, count, block);
      taken += compact<true>(pivot.key, pivot.column + 1 - first, read, static_cast<std::int32_t>(first), count,
                             left.keys + taken, left.columns + taken, right.keys + rest, right.columns + rest);
    }
    return taken;
  }

  // Partitions entries: the left ones are appended to the answer of `left`, the right ones stay.
  std::int64_t split_part(std::int64_t seed, Key* keys, std::int32_t* columns, std::int64_t count, std::int64_t wanted,
                          Part& left) {
    Key sample[kSamples];
    std::int32_t places[kSamples];
    for (std::int64_t j = 0; j < kSamples; ++j) {
      const std::int64_t at = place_of(seed, j, count);
      sample[j] = keys[at];
      places[j] = static_cast<std::int32_t>(at);
    }
    const Pair<Key> pivot = pivot_of(sample, places, wanted, count);
    return compact<true>(pivot.key, pivot.column + 1, keys, static_cast<const std::int32_t*>(columns), count,
                         left.keys + left.answer, left.columns + left.answer, keys, columns);
  }

  const SelectTask& task_;
  KeyReader<Key> reader_;
  Part arrays_[2];
  Room<Word<Key>> words_, sorting_;
};

}  // namespace
}  // namespace tonari
