// The rows of a round, written once for every instruction set. Internal linkage throughout.
#pragma once

#include "exact/refines.hpp"
#include "nn_descent/byte_values.hpp"
#include "nn_descent/others.hpp"
#include "nn_descent/short_scores.hpp"
#include "select/float_keys.hpp"

namespace tonari {
namespace {

// The best entries of one row so far, ascending by (key, id). The two lowest bits of an id are marks.
class BestEntries {
 public:
  static constexpr std::int64_t kWasThere = 1, kIsNew = 2;

  explicit BestEntries(std::int64_t most) : most_(most), items_(room_.get(most)) {}

  void clear() { size_ = 0; }
  std::int64_t size() const { return size_; }
  std::int64_t most() const { return most_; }
  const Ranked& operator[](std::int64_t at) const { return items_[at]; }
  double worst() const { return size_ < most_ ? std::numeric_limits<double>::infinity() : items_[size_ - 1].key; }

  void offer(double key, std::int64_t id, std::int64_t marks) {
    const Ranked item{key, id << 2 | marks};
    if (size_ == most_ && !(item < items_[size_ - 1])) return;
    std::int64_t at = size_ < most_ ? size_++ : size_ - 1;
    for (; at > 0 && item < items_[at - 1]; --at) items_[at] = items_[at - 1];
    items_[at] = item;
  }

 private:
  std::int64_t most_, size_ = 0;
  Room<Ranked> room_;
  Ranked* items_;
};

class RoundRows {
 public:
  RoundRows(const DescentTask& task, ExactValues exact)
      : task_(task),
        exact_(exact),
        others_(task),
        best_(task.kept != nullptr ? task.list : task.k),
        ahead_(task.points),
        scores_(task),
        shorts_(task),
        bytes_(task),
        scored_(task.points.dtype != Dtype::f64),
        whole_(ByteValues::serves(task)),
        brief_(scored_ && task.kept == nullptr),
        by_shorts_(brief_ && shorts_.exist()),
        ids_(ids_room_.get(task.list)),
        marks_(marks_room_.get(task.list)),
        values_(values_room_.get(task.list > kBatch ? task.list : kBatch)),
        met_(met_room_.get(task.list + others_.most())),
        scores_of_(scores_room_.get(task.list + others_.most())),
        words_(words_room_.get(task.list + others_.most())) {}

  std::int64_t run(std::int64_t begin, std::int64_t end) {
    std::int64_t changed = 0;
    for (std::int64_t at = begin; at < end; ++at) {
      if (at + 2 < end) others_.expect_row(row_at(at + 2));
      if (at + 1 < end) others_.expect_hubs(row_at(at + 1));
      changed += row(row_at(at));
    }
    return changed;
  }

 private:
  static constexpr std::int64_t kBatch = 8;  // number of exact values that are computed together
  static constexpr std::int64_t kAhead = 2;  // rows of the next batch that are prefetched

  std::int64_t row_at(std::int64_t at) const { return task_.order != nullptr ? task_.order[at] : at; }

  std::int64_t row(std::int64_t u) {
    const ExactQuery query = exact_query(task_.metric, task_.points, u);
    if (whole_) bytes_.open(query);
    best_.clear();
    if (!brief_) keep_own(u, query);
    const std::int64_t count = others_.gather(u);
    if (scored_) {
      meet_scored(u, query, count);
    } else {
      meet_all(query, count);
    }
    return write(u);
  }

  void values_of(const ExactQuery& query, const std::int64_t* ids, std::int64_t count) {
    if (whole_) {
      bytes_(ids, count, values_);
    } else {
      exact_(task_.metric, query, task_.points, ids, count, values_);
    }
  }

  // The returned value, negated where larger is nearer.
  double key_of(double value) const {
    const double returned = task_.double_output ? value : static_cast<double>(static_cast<float>(value));
    return is_descending(task_.metric) ? -returned : returned;
  }

  void keep_own(std::int64_t u, const ExactQuery& query) {
    const std::int32_t* own = task_.entries + u * task_.list;
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < task_.list; ++j) {
      if (own[j] < 0) continue;
      const bool waits = (own[j] & kNew) != 0 && j >= task_.hubs;  // whether the entry is new, but not yet a hub
      ids_[count] = own[j] & kIdMask;
      marks_[count++] = BestEntries::kWasThere | (waits ? BestEntries::kIsNew : 0);
    }
    offer(query, ids_, marks_, count);
  }

  // Offers the points that their scores do not rule out, the nearest first, since each may lower the limit.
  void meet_scored(std::int64_t u, const ExactQuery& query, std::int64_t others) {
    own_ = brief_ ? list_own(u) : 0;
    std::copy_n(others_.ids(), others, met_ + own_);
    std::int64_t left = score(u, query, own_ + others), done = 0;
    if (best_.size() == 0 && left > best_.most()) {  // there is no limit yet: the nearest by their scores set it
      done = best_.most();
      std::nth_element(words_, words_ + done - 1, words_ + left, Smaller{});
      offer_words(query, 0, done);
      const std::int32_t most = float_key(limit());
      std::int64_t kept = done;
      for (std::int64_t at = done; at < left; ++at) {  // without branches
        words_[kept] = words_[at];
        kept += key_of_word(words_[at]) <= most;
      }
      left = kept;
    }
    if (left - done > kBatch) std::sort(words_ + done, words_ + left, Smaller{});
    offer_words(query, done, left);
  }

  // Writes a word for each of the points met whose scores are within the limit; returns their number.
  std::int64_t score(std::int64_t u, const ExactQuery& query, std::int64_t count) {
    if (shorts_.exist()) {
      shorts_.open(u);
      shorts_(met_, count, scores_of_);
      if (by_shorts_) return write_words(count);
      const float most = shorts_.limit(best_.worst());
      std::int64_t left = 0;
      for (std::int64_t j = 0; j < count; ++j) {  // without branches
        met_[left] = met_[j];
        left += !(scores_of_[j] > most);
      }
      count = left;
    }
    scores_.open(query);
    scores_(met_, count, scores_of_);
    return write_words(count);
  }

  // A word is a key that ascends with the score, NaN first, and the place of the point among those met.
  std::int64_t write_words(std::int64_t count) {
    const float most = limit();
    std::int64_t left = 0;
    for (std::int64_t j = 0; j < count; ++j) {  // without branches
      const float score = scores_of_[j];
      const std::int32_t key = score == score ? float_key(score) : std::numeric_limits<std::int32_t>::min();
      words_[left] = static_cast<std::uint64_t>(static_cast<std::uint32_t>(key) ^ 0x80000000u) << 32 |
                     static_cast<std::uint32_t>(j);
      left += !(score > most);
    }
    return left;
  }

  static std::int32_t key_of_word(std::uint64_t word) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(word >> 32) ^ 0x80000000u);
  }

  static std::int64_t place_of(std::uint64_t word) { return static_cast<std::int64_t>(word & 0xffffffffu); }

  // No point whose key is at most that of the worst entry has a score above this.
  float limit() const { return by_shorts_ ? shorts_.limit(best_.worst()) : scores_.limit(best_.worst()); }

  // Offers the points of words [at, end), which ascend, as far as the limit reaches.
  void offer_words(const ExactQuery& query, std::int64_t at, std::int64_t end) {
    float most = limit();
    while (at < end) {
      std::int64_t batch[kBatch], marks[kBatch], size = 0;
      for (; at < end && size < kBatch; ++at) {
        if (key_of_word(words_[at]) > float_key(most)) continue;
        const std::int64_t place = place_of(words_[at]);
        marks[size] = place < own_ ? BestEntries::kWasThere : BestEntries::kIsNew;
        batch[size++] = met_[place];
      }
      for (std::int64_t next = at; next < end && next < at + kAhead; ++next) ahead_(met_[place_of(words_[next])]);
      offer(query, batch, marks, size);
      most = limit();
    }
  }

  // Lists row u's own entries among the points that it meets; returns their number.
  std::int64_t list_own(std::int64_t u) {
    const std::int32_t* own = task_.entries + u * task_.list;
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < task_.list; ++j) {
      met_[count] = own[j] & kIdMask;
      count += own[j] >= 0;
    }
    return count;
  }

  void meet_all(const ExactQuery& query, std::int64_t count) {
    const std::int32_t* ids = others_.ids();
    for (std::int64_t at = 0; at < count;) {
      std::int64_t batch[kBatch], marks[kBatch], size = 0;
      for (; at < count && size < kBatch; ++at) {
        marks[size] = BestEntries::kIsNew;
        batch[size++] = ids[at];
      }
      offer(query, batch, marks, size);
    }
  }

  void offer(const ExactQuery& query, const std::int64_t* ids, const std::int64_t* marks, std::int64_t count) {
    values_of(query, ids, count);
    for (std::int64_t j = 0; j < count; ++j) best_.offer(key_of(values_[j]), ids[j], marks[j]);
  }

  std::int64_t write(std::int64_t u) {
    if (task_.kept != nullptr) write_kept(task_.kept + u * task_.list);
    const std::int64_t first = u * task_.k;
    return task_.double_output ? write_found(u, static_cast<double*>(task_.distances) + first, task_.indices + first)
                               : write_found(u, static_cast<float*>(task_.distances) + first, task_.indices + first);
  }

  void write_kept(std::int32_t* kept) const {
    for (std::int64_t j = 0; j < task_.list; ++j) {
      kept[j] = kMissing;
      if (j < best_.size()) {
        kept[j] = static_cast<std::int32_t>(best_[j].id >> 2) | (best_[j].id & BestEntries::kIsNew ? kNew : 0);
      }
    }
  }

  template <class Value>
  std::int64_t write_found(std::int64_t u, Value* distances, std::int32_t* indices) const {
    const bool descending = is_descending(task_.metric);
    const Value missing = std::numeric_limits<Value>::infinity() * (descending ? Value{-1} : Value{1});
    std::int64_t changed = 0;
    double sum = 0;
    for (std::int64_t j = 0; j < task_.k; ++j) {
      if (j >= best_.size()) {
        distances[j] = missing;
        indices[j] = kMissing;
        continue;
      }
      const Ranked& item = best_[j];
      distances[j] = static_cast<Value>(descending ? -item.key : item.key) + Value{0};  // no negative zero
      indices[j] = static_cast<std::int32_t>(item.id >> 2);
      changed += (item.id & BestEntries::kWasThere) == 0;
      if (std::fabs(distances[j]) < std::numeric_limits<Value>::infinity()) sum += static_cast<double>(distances[j]);
    }
    task_.sums[u] = sum;
    return changed;
  }

  const DescentTask& task_;
  const ExactValues exact_;
  Others others_;
  BestEntries best_;
  const Ahead ahead_;
  Scores scores_;
  ShortScores shorts_;
  ByteValues bytes_;
  const bool scored_, whole_, brief_, by_shorts_;
  std::int64_t own_ = 0;  // the first points met, which are entries of the row already
  Room<std::int64_t> ids_room_, marks_room_;
  Room<double> values_room_;
  Room<std::int32_t> met_room_;
  Room<float> scores_room_;
  Room<std::uint64_t> words_room_;
  std::int64_t *ids_, *marks_;
  double* values_;
  std::int32_t* met_;
  float* scores_of_;
  std::uint64_t* words_;
};

}  // namespace
}  // namespace tonari
