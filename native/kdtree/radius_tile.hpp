// The walk within a radius, written once for every instruction set (simd/vec.hpp). Internal linkage throughout: each
// instruction set compiles its own copy.
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "core/room.hpp"
#include "core/rows.hpp"
#include "kdtree/children.hpp"
#include "kdtree/radius.hpp"
#include "kdtree/reach.hpp"
#include "kdtree/tree_excluded.hpp"
#include "kdtree/tree_masks.hpp"
#include "kdtree/tree_types.hpp"
#include "select/order.hpp"

namespace tonari {
namespace {

// Counts or lists the points found for a query; shared by all metrics and types of rows.
class FoundWithin : public TreeRadius {
 protected:
  FoundWithin(const TreeRadiusTask& task, std::int64_t begin, std::int64_t end)
      : TreeRadius(task, begin, end),
        tree_(*task.tree),
        d_(tree_.d),
        root_(takes_root(task.metric)),
        rules_(task.allowed),
        by_points_(rules_ != nullptr && !rules_->is_empty()),
        masked_(by_points_ && rules_->in_tree()),
        listed_(by_points_ && !masked_ && task.places != nullptr),
        points_(tree_.begins[std::int64_t{1} << tree_.height]),
        exact_(exact_room_.get(d_)) {}

  // Begins the query of a row; returns whether it can find any point.
  bool begin_row(std::int64_t row) {
    count_ = 0;
    found_.clear();
    limit_ = task_.limits[row] + 0.0;  // not -0
    self_ = task_.self_ids != nullptr ? task_.self_ids[row] : -1;
    if (!(limit_ >= 0)) return false;
    if (rules_ != nullptr) open_rules(row);
    load_row(task_.queries, row, exact_);
    return true;
  }

  // Counts or lists the points at place, place + 1, ... whose bits are set, if their values are within the radius.
  void decide(const double* sums, std::uint32_t lanes, std::int64_t place) {
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      const double value = root_ ? std::sqrt(sums[lane]) : sums[lane];
      const double returned = task_.double_output ? value : static_cast<double>(static_cast<float>(value));
      if (!(returned <= limit_)) continue;
      if (task_.lists) {
        const std::int64_t id = id_at(place + lane);
        if (id == self_ || (task_.later && id < self_)) continue;
        found_.push_back({returned, id});
      }
      ++count_;
    }
  }

  [[gnu::noinline]] void end_row(std::int64_t row) {
    // The walk counts the query's own point, at distance 0, like any other; here it is subtracted.
    if (!task_.lists && self_ >= 0 && limit_ >= 0) --count_;
    count_deferred();
    if (insides_ > 0 && insides_ <= kDeferred && allowed_.reads_mask()) return defer(row);
    if (insides_ > 0) count_inside();
    task_.counts[row] = count_;
    if (!task_.lists) return;
    sort_ranked(found_);
    append(found_);
  }

  // Counts the points below a child whose box is within the radius.
  void take_below(int level, std::int64_t child) {
    const std::int64_t leaves = std::int64_t{1} << tree_.height, span = std::int64_t{1} << (4 * level);
    const std::int64_t last = (child + 1) * span;
    const std::int64_t begin = tree_.begins[child * span], end = tree_.begins[last < leaves ? last : leaves];
    met_ += end - begin;
    if (entries_ != nullptr || mask_row_ >= 0 || (by_places_ && by_points_)) {
      for (std::int64_t place = begin; place < end; place += kTreeWidth) take_inside(first_lanes(end - place), place);
      return;
    }
    if (!by_points_) {
      count_ += end - begin - (by_places_ ? excluded_.count(begin, end) : 0);
      return;
    }
    if (tree_.wide_ids) count_ += allowed_.count(static_cast<const std::int64_t*>(tree_.ids) + begin, end - begin);
    else count_ += allowed_.count(static_cast<const std::int32_t*>(tree_.ids) + begin, end - begin);
  }

  // Counts the points at place, place + 1, ... whose bits are set, which are within the radius.
  void take_inside(std::uint32_t lanes, std::int64_t place) {
    if (by_points_) met_ += std::popcount(lanes);
    lanes = by_place(lanes, place);
    if (!by_points_) {
      count_ += std::popcount(lanes);
      return;
    }
    if (tree_.wide_ids) pack_inside(static_cast<const std::int64_t*>(tree_.ids) + place, lanes, wide_inside_);
    else pack_inside(static_cast<const std::int32_t*>(tree_.ids) + place, lanes, inside_);
    if (insides_ > kInsides) count_inside();
  }

  void open_rules(std::int64_t row) {
    if (task_.entries != nullptr && entries_ == nullptr) choose_entries();
    const AllowedPairs& rules = *rules_;
    if (entries_ != nullptr) entry_ = of_queries_ != nullptr ? of_queries_[rules.row_of(row)] : 1;
    if (masked_) choose_masks();
    if (listed_) choose_places(row);
    if (!by_points_) return;
    allowed_.open(mask_row_ >= 0 || by_places_ ? others_ : rules, row);
    if (mask_row_ >= 0 || by_places_) return;
    const std::int64_t read = kReadLines * kLine * looked_up_;
    looked_up_ = 0;
    ahead_ = {};
    if (next_ + 1 < end_) ahead_ = rules.memory_of(query_at(next_ + 1));
    if (std::ssize(ahead_) > std::min(read, kAheadBytes)) ahead_ = {};
  }

  // Compares entries in the order of the tree if all queries are expected to meet as many points as have to be copied.
  void choose_entries() {
    if (!task_.entries->are_made() && !are_many(met_)) return;
    const TreeEntries& made = task_.entries->of(tree_, points_, *task_.allowed);
    entries_ = made.of_points.data(), of_queries_ = made.of_queries, same_ = made.same;
    rules_ = &made.others;
    by_points_ = !rules_->is_empty();
    if (mask_row_ >= 0) without_masks();
    if (by_places_) without_excluded();
  }

  // Whether all queries are expected to meet at least as many points as the tree has, judging by the block's queries.
  bool are_many(std::int64_t met) const {
    const std::int64_t asked = next_ - begin_;
    return asked >= kMetQueries && met / asked * task_.queries.n >= points_;
  }

  void without_masks() {
    others_ = *rules_;
    others_.mask = nullptr;
    by_points_ = !others_.is_empty();
  }

  void without_excluded() {
    others_ = *rules_;
    others_.excluded = nullptr;
    by_points_ = !others_.is_empty();
  }

  // Copies the masks of the next queries into the order of the tree, if each of the previous queries met enough points,
  // on average, that copying takes less time than looking them up one by one.
  void choose_masks() {
    if (next_ < masks_end_) {
      mask_row_ = static_cast<int>(next_ - masks_begin_);  // a query that finds nothing opens no rules
      return;
    }
    const std::int64_t asked = next_ - masks_begin_;
    const bool copies =
        asked >= kMetQueries && end_ - next_ >= kMetQueries && (met_ - met_before_) * kCopied >= asked * points_;
    if (!copies && asked < TreeMasks::kQueries && mask_row_ < 0) return;
    masks_begin_ = next_, met_before_ = met_;
    mask_row_ = -1;
    by_points_ = true;
    if (!copies) return;
    const int queries = static_cast<int>(std::min<std::int64_t>(TreeMasks::kQueries, end_ - next_));
    masks_.fill(*rules_, tree_, points_, queries, [this](int i) { return query_at(next_ + i); });
    masks_end_ = next_ + queries;
    mask_row_ = 0;
    without_masks();
  }

  // Looks up excluded points by their places if queries meet more than a few points, which are compared with the list at
  // once, and if all queries are expected to meet as many points as there are places.
  void choose_places(std::int64_t row) {
    if (!by_places_) {
      const std::int64_t asked = next_ - begin_;
      by_places_ = asked >= kMetQueries && met_ >= kListed * asked && (task_.places->are_made() || are_many(met_));
      if (!by_places_) return;
      without_excluded();
    }
    excluded_.open(task_.places->of(tree_, points_), rules_->excluded_of(row));
    if (next_ + 1 == end_) return;
    ahead_ = rules_->memory_of(query_at(next_ + 1));
    for (std::int64_t at = 0; at < std::min(std::ssize(ahead_), kAheadBytes); at += kLine) {
      __builtin_prefetch(ahead_.data() + at, 0, 2);
    }
  }

  // Appends the ids whose bits are set to those that are looked up in the rules later.
  template <class Id>
  void pack_inside(const Id* ids, std::uint32_t lanes, Id* to) {
    if constexpr (kCompresses) {
      constexpr int width = kRegisterLanes<Id>;
      for (int first = 0; first < kTreeWidth; first += width) {
        const std::uint32_t part = lanes >> first & ((1u << width) - 1);
        if (part == 0) continue;
        compress(to + insides_, part, Register<Id>::load_first(ids + first, std::bit_width(part)));
        insides_ += std::popcount(part);
      }
    } else {
      for (; lanes != 0; lanes &= lanes - 1) to[insides_++] = ids[std::countr_zero(lanes)];
    }
    for (int i = 0; i < kLinesAhead && !ahead_.empty(); ++i) {
      __builtin_prefetch(ahead_.data(), 0, 2);
      ahead_ = ahead_.subspan(std::min<std::size_t>(kLine, ahead_.size()));
    }
  }

  // Leaves few points of a query to be looked up after the next query, and loads their entries of its mask until then.
  void defer(std::int64_t row) {
    looked_up_ += insides_;
    for (int i = 0; i < insides_; ++i) {
      deferred_[i] = tree_.wide_ids ? wide_inside_[i] : inside_[i];
      load_ahead(allowed_, deferred_[i]);
    }
    deferred_row_ = row, deferred_count_ = count_, deferred_points_ = insides_;
    insides_ = 0;
    std::swap(allowed_, deferred_rules_);
  }

  void count_inside() {
    looked_up_ += insides_;
    if (insides_ <= kTreeWidth && !tree_.wide_ids && allowed_.only_excludes()) {
      count_ += insides_ - std::popcount(excluded_ones());
      insides_ = 0;
      return;
    }
    count_ += tree_.wide_ids ? allowed_.count(wide_inside_, insides_) : allowed_.count(inside_, insides_);
    insides_ = 0;
  }

  // Those of at most kTreeWidth packed points that are in the query's list of excluded points, which is read once.
  std::uint32_t excluded_ones() const {
    using Ids = Vec<std::int32_t, kTreeWidth>;
    const Ids inside = Ids::load(inside_);
    auto found = inside == Ids(-1);
    for (const std::int64_t id : allowed_.excluded()) found = found | (inside == Ids(static_cast<std::int32_t>(id)));
    return bits(found) & first_lanes(insides_);
  }

  // The points at place, place + 1, ... whose bits are set and that the query may find.
  std::uint32_t allowed_ones(std::uint32_t lanes, std::int64_t place) {
    if (by_points_) met_ += std::popcount(lanes);
    lanes = by_place(lanes, place);
    if (!by_points_) return lanes;
    std::uint32_t kept = 0;
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      kept |= static_cast<std::uint32_t>(allows(allowed_, id_at(place + lane))) << lane;
    }
    return kept;
  }

  // The bits of the first `count` points of a run; all bits if it has fewer.
  static std::uint32_t first_lanes(std::int64_t count) {
    return count < kTreeWidth ? (1u << count) - 1 : (1u << kTreeWidth) - 1;
  }

  // Counts the points that were left to be looked up.
  void count_deferred() {
    if (deferred_row_ < 0) return;
    task_.counts[deferred_row_] = deferred_count_ + deferred_rules_.count(deferred_, deferred_points_);
    deferred_row_ = -1;
  }

  const TreeView& tree_;
  const std::int64_t d_;
  double limit_ = 0;
  std::int64_t count_ = 0;

 private:
  // The points at place, place + 1, ... whose bits are set, and that rules in the order of the tree allow.
  std::uint32_t by_place(std::uint32_t lanes, std::int64_t place) const {
    if (entries_ != nullptr) lanes = with_entry(lanes, place);
    if (by_places_) lanes = excluded_.allowed(lanes, place);
    return mask_row_ >= 0 ? masks_.allowed(lanes, place, mask_row_) : lanes;
  }

  // The points at place, place + 1, ... whose bits are set and whose entry equals the query's (or differs, without
  // `same`).
  std::uint32_t with_entry(std::uint32_t lanes, std::int64_t place) const {
    using Entries = Vec<std::int64_t, kTreeWidth>;
    const std::uint32_t equal = bits(Entries::load(entries_ + place) == Entries(entry_));
    return lanes & (same_ ? equal : ~equal);
  }

  std::int64_t id_at(std::int64_t place) const {
    return tree_.wide_ids ? static_cast<const std::int64_t*>(tree_.ids)[place]
                          : static_cast<const std::int32_t*>(tree_.ids)[place];
  }

  const bool root_;                           // values are square roots of sums
  const std::int64_t* entries_ = nullptr;     // entries of points in the order of the tree; null: none
  const std::int64_t* of_queries_ = nullptr;  // entries of queries by their numbers in the rules; null: all are 1
  bool same_ = true;                          // a query finds points with its own entry; false: with other entries
  const AllowedPairs* rules_;                 // all other rules; null: none
  bool by_points_;     // whether these rules leave out points that are looked up by their numbers
  const bool masked_;  // whether queries have masks of their own, which may be copied
  const bool listed_;  // whether queries have excluded points that may be looked up by their places
  const std::int64_t points_;
  std::int64_t entry_ = 0;  // the query's entry
  Room<double> exact_room_;
  std::vector<Ranked> found_;
  std::int64_t self_ = -1;
  AllowedRow allowed_;
  static constexpr int kInsides = 1024;  // number of points within the radius that are looked up in the rules together
  std::int32_t inside_[kInsides + 2 * kTreeWidth];
  std::int64_t wide_inside_[kInsides + 2 * kTreeWidth];
  int insides_ = 0;
  // Points of an earlier query that are still looked up, with its rules; deferred_row_ is negative if there are none.
  static constexpr int kDeferred = 64;
  std::int64_t deferred_[kDeferred], deferred_row_ = -1, deferred_count_ = 0;
  int deferred_points_ = 0;
  AllowedRow deferred_rules_;
  // The next query's row of a mask, or its excluded points, are loaded in advance, a few lines for each run of points,
  // but only if the last query looked up enough points to read about half of such a row or more.
  static constexpr std::int64_t kLine = 64, kReadLines = 2, kAheadBytes = std::int64_t{1} << 16;
  static constexpr int kLinesAhead = 8;
  std::span<const std::uint8_t> ahead_;
  std::int64_t looked_up_ = 0;
  // Masks in the order of the tree, for the queries at [masks_begin_, masks_end_) of the order, if there are any.
  TreeMasks masks_;
  int mask_row_ = -1;  // of the query in `masks_`; negative: its mask is looked up by numbers
  std::int64_t masks_begin_ = next_, masks_end_ = next_;
  TreeExcluded excluded_;
  bool by_places_ = false;       // whether excluded points are looked up in `excluded_`
  AllowedPairs others_;          // the rules without those that are looked up by places
  std::int64_t met_ = 0;         // points that the block's queries have looked up
  std::int64_t met_before_ = 0;  // of these, the ones before masks_begin_
  static constexpr int kMetQueries = 8;
  static constexpr std::int64_t kListed = 2 * kTreeWidth;
  static constexpr std::int64_t kCopied = 64;  // copying a mask takes as long as looking up 1 / kCopied of its points

 protected:
  double* const exact_;  // the query in float64
};

template <class STEP, class T>
class RadiusWalk final : public FoundWithin {
  static constexpr int W = kTreeWidth;
  static constexpr int kLevels = 16;  // enough for 16^16 leaves
  using F = Vec<T, W>;
  using K = ChildKeys<T>;

 public:
  RadiusWalk(const TreeRadiusTask& task, std::int64_t begin, std::int64_t end)
      : FoundWithin(task, begin, end), reach_(task.metric, d_), values_(value_room_.get(d_)) {}

  std::int64_t run(std::int64_t budget, TreeVisits& visits) override {
    const TreeVisits before = visits;
    const std::int64_t first = next_;
    while (next_ < end_) {
      search(query_at(next_), visits);
      ++next_;
      const std::int64_t values = visits.points - before.points + 2 * W * (visits.nodes - before.nodes);
      if (values * d_ > budget) break;
    }
    count_deferred();
    return next_ - first;
  }

 private:
  void search(std::int64_t row, TreeVisits& visits) {
    if (begin_row(row)) {
      for (std::int64_t i = 0; i < d_; ++i) values_[i] = static_cast<T>(exact_[i]);
      outer_ = task_.double_output ? reach_.of(limit_)
                                   : reach_.of_single(std::bit_cast<std::int32_t>(static_cast<float>(limit_)));
      if (std::isnan(outer_)) outer_ = std::numeric_limits<T>::infinity();
      inner_ = task_.lists ? T{-1} : reach_.within(limit_);
      walk(visits);
    }
    end_row(row);
  }

  void walk(TreeVisits& visits) {
    const int top = static_cast<int>(tree_.boxes.size()) - 1;
    int level = top;
    open(top, 0, visits);
    for (;;) {
      if (left_[level] == 0) {
        if (level++ == top) return;
        continue;
      }
      const std::int64_t child = nodes_[level] * W + std::countr_zero(left_[level]);
      left_[level] &= left_[level] - 1;
      if (level > 0) {
        open(--level, child, visits);
        continue;
      }
      ++visits.leaves;
      visits.points += tree_.begins[child + 1] - tree_.begins[child];
      scan(child);
    }
  }

  // Finds the children of a node that may have points within the radius; a count takes whole children within it.
  void open(int level, std::int64_t node, TreeVisits& visits) {
    ++visits.nodes;
    nodes_[level] = node;
    const K keys = child_keys<STEP>(tree_, level, node, values_);
    std::uint32_t left = bits(keys <= K(std::bit_cast<ChildKey<T>>(outer_)));
    // Only above the leaves, since a leaf's points are compared as quickly as its box.
    if (level > 0 && inner_ >= 0 && left != 0) {
      const std::uint32_t inside = left & bits(farthest(level, node) <= F(inner_));
      left &= ~inside;
      for (std::uint32_t lanes = inside; lanes != 0; lanes &= lanes - 1) {
        take_below(level, node * W + std::countr_zero(lanes));
      }
    }
    left_[level] = left;
  }

  // Sums to the farthest corners of the children's boxes; +infinity where a child is absent.
  F farthest(int level, std::int64_t node) const {
    const T* box = static_cast<const T*>(tree_.boxes[static_cast<std::size_t>(level)]) + node * d_ * 2 * W;
    F sum = T{0};
    for (std::int64_t i = 0; i < d_; ++i, box += 2 * W) {
      const F q = values_[i];
      sum = Columns<STEP>::bound(sum, max(q - F::load(box), F::load(box + W) - q));
    }
    return sum;
  }

  void scan(std::int64_t leaf) {
    const std::int64_t begin = tree_.begins[leaf], count = tree_.begins[leaf + 1] - begin;
    const T* x = static_cast<const T*>(tree_.rows) + leaf * d_ * tree_.capacity;
    for (std::int64_t p = 0; p < count; p += W) {
      F sum = T{0};
      for (std::int64_t i = 0; i < d_; ++i) {
        sum = Columns<STEP>::score(sum, F(values_[i]) - F::load(x + p + i * tree_.capacity));
      }
      const std::uint32_t present = first_lanes(count - p);
      std::uint32_t passed = bits(sum <= F(outer_)) & present;
      if (inner_ >= 0) {
        const std::uint32_t inside = bits(sum <= F(inner_)) & passed;
        take_inside(inside, begin + p);
        passed &= ~inside;
      }
      if (passed != 0) passed = allowed_ones(passed, begin + p);
      if (passed != 0) take(passed, x + p, begin + p);
    }
  }

  // Decides about points that passed by their exact values.
  void take(std::uint32_t passed, const T* x, std::int64_t place) {
    constexpr int width = kRegisterLanes<double>;
    constexpr std::uint32_t run = (1u << width) - 1;
    do {
      const int first = std::countr_zero(passed) / width * width;
      double sums[width];
      exact_columns<STEP>(exact_, x + first, tree_.capacity, d_, sums);
      decide(sums, passed >> first & run, place + first);
      passed &= ~(run << first);
    } while (passed != 0);
  }

  const Reach<T> reach_;
  Room<T> value_room_;
  T* const values_;

  T outer_ = 0;   // a point with a larger sum is outside the radius
  T inner_ = -1;  // a point with at most this sum is within the radius; negative: none is certain
  std::uint32_t left_[kLevels];
  std::int64_t nodes_[kLevels];
};

inline std::unique_ptr<TreeRadius> tree_radius_tile(const TreeRadiusTask& task, std::int64_t begin, std::int64_t end) {
  return with_tree_types(task.metric, *task.tree, [&]<class TYPES>(TYPES) -> std::unique_ptr<TreeRadius> {
    return std::make_unique<RadiusWalk<typename TYPES::Step, typename TYPES::Value>>(task, begin, end);
  });
}

}  // namespace
}  // namespace tonari
