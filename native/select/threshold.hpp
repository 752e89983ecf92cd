// Threshold, compaction, partial sort (matsumoto2015, "TH-heap", sections V-A to V-C), row by row.
//
//   n_S samples of the row -> a threshold -> the row is read once: the columns at or below it are packed together
//   finish "heap"      as in the paper: the threshold is the k-th smallest sample, so that about n k / n_S values are
//                      left, but at least k; a batch of rows is compacted, then a min-max heap of size k selects
//   finish "halving"   the threshold is the sample below which k values of the row are expected, plus three deviations;
//                      what is left stays in the L1 cache and is condensed to the k smallest. A row that keeps fewer
//                      than k is read again with the threshold of the paper
//
// Thresholds are (key, column) pairs, so that they prune equal values too. They are useful for any order of the values,
// since the whole row is sampled, and the answer is right in any case. If k is near n, nothing can be pruned, and no
// samples are taken.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "select/key_value.hpp"
#include "select/min_max_heap.hpp"
#include "select/order.hpp"
#include "select/samples.hpp"

namespace tonari {
namespace {

template <class Key, bool COUNT>
class ThresholdRows {
 public:
  explicit ThresholdRows(const SelectTask& task) : task_(task), reader_(task), samples_(task) {}

  std::int64_t select(std::int64_t begin, std::int64_t end) {
    const std::int64_t batch = task_.options.batch;
    end_ = end;
    const std::int64_t together = task_.options.heap ? std::min(batch, end - begin) : 1;
    buffers_ = std::make_unique<Buffer[]>(static_cast<std::size_t>(together));
    for (std::int64_t first = begin; first < end;) {
      const std::int64_t last = std::min(end, (first / batch + 1) * batch);
      most_left_ = 0;
      task_.options.heap ? select_by_heap(first, last) : select_by_halving(first, last);
      if constexpr (COUNT) {
        if (most_left_ > 0) {
          task_.counters->compression += static_cast<double>(task_.n) / static_cast<double>(most_left_);
          ++task_.counters->batches;
        }
      }
      first = last;
    }
    if constexpr (COUNT) task_.counters->lanes = 1;
    return nan_row_;
  }

 private:
  // The columns of a row at or below its threshold, ascending.
  struct Buffer {
    Room<std::int32_t> columns;
    std::int64_t room = 0, count = 0;
    Threshold<Key> threshold;

    void reserve(std::int64_t wanted) {
      if (wanted <= room) return;
      columns.get(wanted + kSpill, count);
      room = wanted;
    }
  };

  void select_by_halving(std::int64_t first, std::int64_t last) {
    Buffer& buffer = buffers_[0];
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t length = task_.length(row), wanted = std::min(task_.k, length);
      buffer.reserve(std::min(length, std::max<std::int64_t>(4 * task_.k, 1024)) + kScanWidth);
      const auto make_room = [&] { return condense_keys(read_keys(row, buffer), buffer, wanted, wanted / 8); };
      read_row(row, samples_.plan(length, false), buffer, make_room);
      if (buffer.count < wanted) read_row(row, samples_.plan(length, true), buffer, make_room);
      Key* keys = read_keys(row, buffer);
      if (buffer.count > 2 * wanted) condense_keys(keys, buffer, wanted, wanted / 8);
      if (buffer.count > wanted) condense_keys(keys, buffer, wanted, 0);
      Word<Key>* words = pack(keys, buffer);
      if constexpr (COUNT) count_ratio(buffer.threshold, words, wanted);
      finish_row<Key>(task_, row, words, wanted, sorting_);
    }
  }

  void select_by_heap(std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      Buffer& buffer = buffers_[row - first];
      buffer.reserve(1024);
      read_row(row, samples_.plan(task_.length(row), true), buffer, [&] {
        buffer.reserve(2 * buffer.room);
        return kLastKey<Key>;
      });
    }
    for (std::int64_t row = first; row < last; ++row) {
      Buffer& buffer = buffers_[row - first];
      const std::int64_t wanted = std::min(task_.k, task_.length(row));
      Word<Key>* words = pack(read_keys(row, buffer), buffer);
      if (wanted > 0) {
        MinMaxHeap<Word<Key>> heap(words, wanted);
        for (std::int64_t i = wanted; i < buffer.count; ++i) {
          if (words[i] < heap.greatest()) heap.replace_greatest(words[i]);
        }
        if constexpr (COUNT) count_ratio(buffer.threshold, words, wanted);
        if (task_.sorted) {
          Word<Key>* sorted = sorting_.get(wanted);
          for (std::int64_t j = 0; j < wanted; ++j) sorted[j] = heap.take_least();
          words = sorted;
        }
      }
      write_row<Key>(task_, row, words, wanted);
    }
  }

  // Reads a row once and packs the columns of the values at or below its threshold. `make_room` may return a bound on
  // the k-th smallest value so far; later values with the same key are larger.
  template <class MakeRoom>
  void read_row(std::int64_t row, const SamplePlan& plan, Buffer& buffer, const MakeRoom& make_room) {
    const std::int64_t length = task_.length(row);
    const Threshold<Key> threshold = samples_.take(row, plan);
    if (row + 1 < end_) samples_.fetch(row + 1, samples_.plan(task_.length(row + 1), task_.options.heap));
    const std::int64_t edge = std::min(threshold.column + 1, length);  // later values with that key are larger
    buffer.count = 0;
    buffer.threshold = threshold;
    Key limit = threshold.key;
    bool open = true;  // false if no value can be small enough; only for integers, which have no NaN
    const auto lower = [&](Key bound) {
      open = bound > std::numeric_limits<Key>::min();
      if (open && bound - 1 < limit) limit = bound - 1;
    };
    Scan scan;
    while (scan.at < length && open) {
      with_format<Key>(task_, [&](auto format) {
        scan_row<decltype(format)>(row_of<decltype(format)>(task_, row), scan.at < edge ? edge : length, limit,
                                   buffer.columns.get(0), buffer.room, scan);
      });
      buffer.count = scan.count;
      if (scan.at == edge) lower(threshold.key);
      if (scan.at < length && scan.count + kScanWidth > buffer.room) {
        const Key bound = make_room();
        if (bound < kLastKey<Key>) lower(bound);
        scan.count = buffer.count;
      }
    }
    if (scan.saw_nan && nan_row_ < 0) nan_row_ = row;
    if constexpr (COUNT) count_left(row, threshold);
  }

  // The keys of the columns in the buffer; the next call overwrites them.
  Key* read_keys(std::int64_t row, Buffer& buffer) {
    Key* keys = keys_.get(buffer.count + kSpill);
    with_format<Key>(task_, [&](auto format) {
      keys_of<decltype(format)>(row_of<decltype(format)>(task_, row), buffer.columns.get(0), buffer.count, keys);
    });
    return keys;
  }
  // Keeps the k smallest and up to `slack` others; returns a bound on the k-th.
  static Key condense_keys(Key* keys, Buffer& buffer, std::int64_t k, std::int64_t slack) {
    const Condensed<Key> left = condense(keys, buffer.columns.get(0), buffer.count, k, slack);
    buffer.count = left.count;
    return left.bound;
  }
  Word<Key>* pack(const Key* keys, Buffer& buffer) {
    const std::int32_t* columns = buffer.columns.get(0);
    Word<Key>* words = words_.get(buffer.count);
    for (std::int64_t i = 0; i < buffer.count; ++i) words[i] = pack_word(keys[i], columns[i]);
    return words;
  }

  void count_left(std::int64_t row, const Threshold<Key>& threshold) {
    const std::int64_t length = task_.length(row);
    std::int64_t left = 0;
    Key block[512];
    for (std::int64_t first = 0; first < length; first += 512) {
      const std::int64_t count = std::min<std::int64_t>(512, length - first);
      const Key* keys = reader_.read(row, first, count, block);
      for (std::int64_t i = 0; i < count; ++i) {
        left += keys[i] < threshold.key || (keys[i] == threshold.key && first + i <= threshold.column);
      }
    }
    task_.counters->examined += length;
    most_left_ = std::max(most_left_, left);
  }

  // Equation 3. A threshold of zero or infinity gives no ratio, unless the value equals it.
  void count_ratio(const Threshold<Key>& threshold, const Word<Key>* words, std::int64_t wanted) {
    if (!threshold.sampled || wanted == 0) return;
    Key kth = word_key<Key>(words[0]);
    for (std::int64_t j = 1; j < wanted; ++j) kth = std::max(kth, word_key<Key>(words[j]));
    const double ratio = kth == threshold.key ? 1 : key_value(task_, kth) / key_value(task_, threshold.key);
    if (!std::isfinite(ratio)) return;
    task_.counters->threshold_ratio += ratio;
    ++task_.counters->rows;
  }

  const SelectTask& task_;
  KeyReader<Key> reader_;
  std::unique_ptr<Buffer[]> buffers_;
  Samples<Key> samples_;
  Room<Key> keys_;
  Room<Word<Key>> words_, sorting_;
  std::int64_t end_ = 0;
  std::int64_t most_left_ = 0;  // largest number of values that a row of the batch has below its threshold
  std::int64_t nan_row_ = -1;
};

}  // namespace
}  // namespace tonari
