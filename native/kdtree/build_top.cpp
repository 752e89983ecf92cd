// TreeTop: the first levels of a tree, whose nodes are larger than the cache. All nodes of a level are cut together, by
// passes over ranges of the rows, which are divided among threads. A sample determines two values between which the
// median should be. A pass counts the values below them and gathers the values between them, and the median is found
// among these.
#include <cmath>
#include <limits>
#include <vector>

#include "kdtree/build.hpp"
#include "kdtree/build_cut.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kBlockRows = 4096;  // rows that are routed and counted together, while they are in the cache

// A node before its cut. Its median is between `lower` and `upper`, unless the sample is misleading.
template <class T>
struct OpenNode {
  bool open = true;
  std::int32_t dimension = 0;
  T lower = 0, upper = 0;
  std::int64_t left = 0;                          // number of rows that go left
  std::int64_t sample_begin = 0, sample_end = 0;  // the node's part of the sample
};

// The results of count() for one node in one range.
template <class T>
struct RangeCount {
  std::int64_t below = 0, at_lower = 0, at_upper = 0;
  std::vector<T> between;
};

template <class T>
struct TopSplit {
  std::int32_t dimension = 0;
  T value = 0;
  std::int64_t tie = 0;  // rows with the split's value go left if they come before this row
  bool left(T of_row, std::int64_t row) const { return (of_row < value) | ((of_row == value) & (row < tie)); }
};

template <class Stored, class T>
class Top final : public TreeTop {
 public:
  Top(const RowsView& points, int levels, std::int64_t ranges, TreeSplits<T> splits)
      : source_{static_cast<const Stored*>(points.data), points.d},
        n_(points.n),
        levels_(levels),
        ranges_(ranges),
        splits_(splits),
        top_((std::size_t{1} << levels) - 1),
        node_of_(static_cast<std::size_t>(points.n)),
        at_level_(static_cast<std::size_t>(ranges)),
        counts_(at_level_.size()),
        tallies_(at_level_.size()),
        nodes_(1),
        next_(2) {
    if (levels == 0) return;
    for (std::int64_t row = 0; row < n_; row += kSampleStep) sample_.push_back(row);
    nodes_[0].sample_end = static_cast<std::int64_t>(sample_.size());
    aim(0, 0, nodes_[0]);
  }

  void count(std::int64_t range) override {
    auto& counts = counts_[static_cast<std::size_t>(range)];
    counts.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].open) counts[i] = {};
    }
    std::int64_t candidates[kBlockRows];
    for_blocks(range, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t found = 0;  // no branch depends on the data until the few candidates are found
      for (std::int64_t row = begin; row < end; ++row) {
        const OpenNode<T>& node = nodes_[node_of(row)];
        const T value = source_.at(row, node.dimension);
        counts[node_of(row)].below += value < node.lower;
        candidates[found] = row;
        found += (value >= node.lower) & (value <= node.upper);
      }
      for (std::int64_t i = 0; i < found; ++i) {
        const OpenNode<T>& node = nodes_[node_of(candidates[i])];
        const T value = source_.at(candidates[i], node.dimension);
        RangeCount<T>& count = counts[node_of(candidates[i])];
        if (value == node.lower) {
          ++count.at_lower;
        } else if (value == node.upper) {
          ++count.at_upper;
        } else {
          count.between.push_back(value);
        }
      }
    });
  }

  bool cut(std::int64_t index) override {
    const auto i = static_cast<std::size_t>(index);
    OpenNode<T>& node = nodes_[i];
    std::int64_t below = 0, at_lower = 0, at_upper = 0;
    std::vector<T> between;
    for (const auto& counts : counts_) {
      below += counts[i].below;
      at_lower += counts[i].at_lower;
      at_upper += counts[i].at_upper;
      between.insert(between.end(), counts[i].between.begin(), counts[i].between.end());
    }
    const auto inside = static_cast<std::int64_t>(between.size());
    const std::int64_t rank = node.left - below;
    if (rank < 0 || rank >= at_lower + inside + at_upper) {
      node.lower = -std::numeric_limits<T>::infinity();
      node.upper = std::numeric_limits<T>::infinity();
      return false;
    }

    TopSplit<T> split{.dimension = node.dimension};
    std::int64_t equal = rank;  // number of rows with the split's value that go left
    if (rank < at_lower) {
      split.value = node.lower;
    } else if (rank >= at_lower + inside) {
      split.value = node.upper;
      equal -= at_lower + inside;
    } else {
      T* middle = between.data() + (rank - at_lower);
      std::nth_element(between.data(), middle, between.data() + inside);
      split.value = *middle;
      equal = std::count(between.data(), middle, *middle);
    }
    if (equal > 0) split.tie = row_of_tie(i, split, equal);
    node.open = false;
    node.upper = -std::numeric_limits<T>::infinity();  // gathers no more candidates if other nodes need another pass
    const std::size_t place = nodes_.size() - 1 + i;
    top_[place] = split;
    splits_.dimensions[place] = split.dimension;
    splits_.values[place] = split.value + T{0};  // never -0
    if (level_ + 1 < levels_) part_sample(index, split);
    return true;
  }

  void descend() override {
    ++level_;
    nodes_ = std::move(next_);
    next_ = std::vector<OpenNode<T>>(2 * nodes_.size());
    for (auto& counts : counts_) counts.clear();
  }

  void tally(std::int64_t range) override {
    auto& tally = tallies_[static_cast<std::size_t>(range)];
    tally.assign(nodes_.size(), 0);
    for_blocks(range, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) ++tally[node_of(row)];
    });
  }

  void place(std::int64_t range, std::int32_t* ids) override { place_ids(range, ids); }
  void place(std::int64_t range, std::int64_t* ids) override { place_ids(range, ids); }

 private:
  std::size_t node_of(std::int64_t row) const { return node_of_[static_cast<std::size_t>(row)]; }

  // Calls visit(begin, end) for blocks of the range's rows, after it has updated the nodes of these rows.
  template <class Visit>
  void for_blocks(std::int64_t range, Visit&& visit) {
    int& at_level = at_level_[static_cast<std::size_t>(range)];
    const std::int64_t last = range_begin(range + 1);
    for (std::int64_t begin = range_begin(range); begin < last; begin += kBlockRows) {
      const std::int64_t end = std::min(begin + kBlockRows, last);
      if (at_level < level_) {
        const TopSplit<T>* splits = top_.data() + ((std::size_t{1} << at_level) - 1);
        for (std::int64_t row = begin; row < end; ++row) {
          const TopSplit<T>& split = splits[node_of(row)];
          const bool right = !split.left(source_.at(row, split.dimension), row);
          node_of_[static_cast<std::size_t>(row)] = static_cast<std::uint8_t>(2 * node_of(row) + right);
        }
      }
      visit(begin, end);
    }
    at_level = level_;
  }

  std::int64_t range_begin(std::int64_t range) const { return n_ / ranges_ * range + std::min(range, n_ % ranges_); }

  // The number of the `equal`-th row (from 0) of the node that has the split's value.
  std::int64_t row_of_tie(std::size_t i, const TopSplit<T>& split, std::int64_t equal) const {
    const OpenNode<T>& node = nodes_[i];
    for (std::int64_t range = 0; range < ranges_; ++range) {
      const RangeCount<T>& counts = counts_[static_cast<std::size_t>(range)][i];
      const std::int64_t found = std::count(counts.between.begin(), counts.between.end(), split.value);
      const std::int64_t here = split.value == node.lower   ? counts.at_lower
                                : split.value == node.upper ? counts.at_upper
                                                            : found;
      if (equal >= here) {
        equal -= here;
        continue;
      }
      for (std::int64_t row = range_begin(range); row < range_begin(range + 1); ++row) {
        if (node_of(row) == i && source_.at(row, split.dimension) == split.value && equal-- == 0) return row;
      }
    }
    return n_;  // not reached, since at least the median has the split's value
  }

  // Divides the node's part of the sample between its children.
  void part_sample(std::int64_t index, const TopSplit<T>& split) {
    const OpenNode<T>& node = nodes_[static_cast<std::size_t>(index)];
    const auto begin = sample_.begin() + node.sample_begin, end = sample_.begin() + node.sample_end;
    const auto middle = std::stable_partition(
        begin, end, [&](std::int64_t row) { return split.left(source_.at(row, split.dimension), row); });
    OpenNode<T>& left = next_[static_cast<std::size_t>(2 * index)];
    OpenNode<T>& right = next_[static_cast<std::size_t>(2 * index + 1)];
    left.sample_begin = node.sample_begin;
    left.sample_end = right.sample_begin = middle - sample_.begin();
    right.sample_end = node.sample_end;
    aim(level_ + 1, 2 * index, left);
    aim(level_ + 1, 2 * index + 1, right);
  }

  // Chooses the node's dimension and, from its sample, the values between which its median should be.
  void aim(int level, std::int64_t index, OpenNode<T>& node) const {
    const std::int64_t begin = node_begin(n_, level, index);
    const std::int64_t count = node_begin(n_, level, index + 1) - begin;
    node.left = node_begin(n_, level + 1, 2 * index + 1) - begin;
    const std::int64_t* rows = sample_.data() + node.sample_begin;
    const std::int64_t seen = node.sample_end - node.sample_begin;
    node.dimension = most_varied_dimension(source_.data, source_.d, rows, seen);
    std::vector<T> values(static_cast<std::size_t>(seen));
    for (std::int64_t i = 0; i < seen; ++i) {
      values[static_cast<std::size_t>(i)] = source_.at(rows[i], node.dimension);
    }
    // Four standard deviations of a sample's median: one node in 10,000 needs a second pass.
    const double expected = static_cast<double>(seen) * static_cast<double>(node.left) / static_cast<double>(count);
    const double reach = 2 * std::sqrt(static_cast<double>(seen)) + 1;
    const auto first = static_cast<std::int64_t>(std::floor(expected - reach));
    const auto last = static_cast<std::int64_t>(std::ceil(expected + reach));
    node.lower = -std::numeric_limits<T>::infinity();
    node.upper = std::numeric_limits<T>::infinity();
    if (first >= 0) {
      std::nth_element(values.begin(), values.begin() + first, values.end());
      node.lower = values[static_cast<std::size_t>(first)];
    }
    if (last < seen) {
      std::nth_element(values.begin() + std::max(first, std::int64_t{0}), values.begin() + last, values.end());
      node.upper = values[static_cast<std::size_t>(last)];
    }
  }

  template <class Id>
  void place_ids(std::int64_t range, Id* ids) const {
    std::vector<Id*> places(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      places[i] = ids + node_begin(n_, levels_, static_cast<std::int64_t>(i));
      for (std::int64_t r = 0; r < range; ++r) places[i] += tallies_[static_cast<std::size_t>(r)][i];
    }
    for (std::int64_t row = range_begin(range); row < range_begin(range + 1); ++row) {
      *places[node_of(row)]++ = static_cast<Id>(row);
    }
  }

  CutSource<Stored, T> source_;
  std::int64_t n_;
  int levels_;
  std::int64_t ranges_;
  TreeSplits<T> splits_;
  std::vector<TopSplit<T>> top_;                    // the splits in breadth-first order
  std::vector<std::uint8_t> node_of_;               // the node of each row on the level that its range has reached
  std::vector<int> at_level_;                       // the level that each range has reached
  std::vector<std::vector<RangeCount<T>>> counts_;  // [range][node]
  std::vector<std::vector<std::int64_t>> tallies_;  // [range][node]
  std::vector<std::int64_t> sample_;                // row numbers, ascending within each node's part
  int level_ = 0;
  std::vector<OpenNode<T>> nodes_, next_;  // the nodes of this level and of the next
};

}  // namespace

template <class T>
std::unique_ptr<TreeTop> make_tree_top(const RowsView& points, int levels, std::int64_t ranges, TreeSplits<T> splits) {
  return with_type(points.dtype, [&]<class Stored>(Stored) -> std::unique_ptr<TreeTop> {
    if constexpr (kHolds<T, Stored>) return std::make_unique<Top<Stored, T>>(points, levels, ranges, splits);
    else return nullptr;
  });
}

template std::unique_ptr<TreeTop> make_tree_top(const RowsView&, int, std::int64_t, TreeSplits<float>);
template std::unique_ptr<TreeTop> make_tree_top(const RowsView&, int, std::int64_t, TreeSplits<double>);

}  // namespace tonari
