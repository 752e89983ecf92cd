// tree_below: cuts a node of the last level of a TreeTop down to its leaves, on one thread. As soon as a node fits into
// the L2 cache its rows are gathered, cut there, and copied into leaves with their boxes.
#include <limits>
#include <vector>

#include "kdtree/build.hpp"
#include "kdtree/build_cut.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kWidth = 16;             // children per node of boxes
constexpr std::int64_t kAhead = 24;             // number of rows that are prefetched ahead of the copy
constexpr std::int64_t kNearBytes = 640 << 10;  // most bytes of gathered rows, which stay in the L2 cache

template <class T, class Index>
struct CutRoom {
  std::vector<T> keys, first, second;
  std::vector<Index> spare;
  std::vector<std::int64_t> looked;

  explicit CutRoom(std::int64_t count)
      : keys(static_cast<std::size_t>(count)),
        first(keys.size() + 1),
        second(keys.size() + 1),
        spare(keys.size() + 1) {}
};

// Cuts the rows in `order` into those that go left, `left` in number, and the others.
template <class T, class Source, class Index>
void cut_rows(const Source& source, Index* order, std::int64_t count, std::int64_t left, CutRoom<T, Index>& room,
              std::int32_t* dimension, T* value) {
  room.looked.clear();
  if (count > kSampledFrom) {  // gathered nodes are smaller, so `order` has the original row numbers
    for (std::int64_t i = 0; i < count; ++i) {
      if (order[i] % kSampleStep == 0) room.looked.push_back(order[i]);
    }
  } else {
    const std::int64_t looks = std::min(count, kLookedAt);
    for (std::int64_t i = 0; i < looks; ++i) room.looked.push_back(order[i * count / looks]);
  }
  *dimension =
      most_varied_dimension(source.data, source.d, room.looked.data(), static_cast<std::int64_t>(room.looked.size()));

  T* keys = room.keys.data();
  for (std::int64_t i = 0; i < count; ++i) keys[i] = source.at(order[i], *dimension);
  const T median = value_of_rank(keys, count, left, room.first.data(), room.second.data());
  std::int64_t below = 0;
  for (std::int64_t i = 0; i < count; ++i) below += keys[i] < median;
  part_rows(order, keys, count, median, left - below, room.spare.data());
  *value = median + T{0};  // never -0
}

template <class Stored, class T, class Id>
class Below {
 public:
  Below(const RowsView& points, Id* ids, const TreeParts<T>& parts)
      : source_{static_cast<const Stored*>(points.data), points.d},
        n_(points.n),
        ids_(ids),
        parts_(parts),
        near_count_(std::min(kSampledFrom, kNearBytes / (points.d * static_cast<std::int64_t>(sizeof(T))) + 1)) {}

  void run(int level, std::int64_t index) {
    const std::int64_t count = node_begin(n_, level, index + 1) - node_begin(n_, level, index);
    if (count > near_count_) far_room_ = std::make_unique<CutRoom<T, Id>>(count);
    near_room_ = std::make_unique<CutRoom<T, std::uint32_t>>(std::min(count, near_count_));
    far(level, index);
  }

 private:
  // Cuts a node that is too large for the cache, reading its rows in place.
  void far(int level, std::int64_t index) {
    const std::int64_t begin = node_begin(n_, level, index);
    const std::int64_t count = node_begin(n_, level, index + 1) - begin;
    if (count <= near_count_) {
      gather(ids_ + begin, count);
      near(level, index, begin, order_.data());
    } else if (level == parts_.height) {
      write_leaf(source_, index, ids_ + begin, count);
    } else {
      const std::int64_t left = node_begin(n_, level + 1, 2 * index + 1) - begin;
      const std::int64_t node = (std::int64_t{1} << level) - 1 + index;
      cut_rows(source_, ids_ + begin, count, left, *far_room_, parts_.splits.dimensions + node,
               parts_.splits.values + node);
      far(level + 1, 2 * index);
      far(level + 1, 2 * index + 1);
    }
  }

  void gather(const Id* rows, std::int64_t count) {
    const std::int64_t d = source_.d;
    near_ids_.assign(rows, rows + count);
    order_.resize(static_cast<std::size_t>(count));
    near_rows_.resize(static_cast<std::size_t>(count * d));
    const std::int64_t bytes = std::min(d * static_cast<std::int64_t>(sizeof(Stored)) + 63, std::int64_t{1024});
    T* out = near_rows_.data();
    for (std::int64_t i = 0; i < count; ++i, out += d) {
      const auto* ahead = reinterpret_cast<const char*>(source_.data + rows[std::min(i + kAhead, count - 1)] * d);
      for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(ahead + at);
      order_[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(i);
      for (std::int64_t j = 0; j < d; ++j) out[j] = source_.at(rows[i], j);
    }
  }

  // Cuts a gathered node. `order` has the numbers of its rows among the gathered rows, which begin at place `base`.
  void near(int level, std::int64_t index, std::int64_t base, std::uint32_t* order) {
    const CutSource<T, T> source{near_rows_.data(), source_.d};
    const std::int64_t begin = node_begin(n_, level, index);
    const std::int64_t count = node_begin(n_, level, index + 1) - begin;
    if (level == parts_.height) {
      for (std::int64_t i = 0; i < count; ++i) ids_[begin + i] = near_ids_[order[i]];
      write_leaf(source, index, order, count);
      return;
    }
    const std::int64_t left = node_begin(n_, level + 1, 2 * index + 1) - begin;
    const std::int64_t node = (std::int64_t{1} << level) - 1 + index;
    cut_rows(source, order, count, left, *near_room_, parts_.splits.dimensions + node, parts_.splits.values + node);
    near(level + 1, 2 * index, base, order);
    near(level + 1, 2 * index + 1, base, order + left);
  }

  template <class Source, class Index>
  void write_leaf(const Source& source, std::int64_t leaf, const Index* order, std::int64_t count) {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    const std::int64_t d = source.d, capacity = parts_.capacity;
    T* column = parts_.rows + leaf * d * capacity;
    T* box = parts_.boxes + leaf / kWidth * d * 2 * kWidth + leaf % kWidth;
    for (std::int64_t j = 0; j < d; ++j, column += capacity, box += 2 * kWidth) {
      T lower = infinity, upper = -infinity;
      for (std::int64_t i = 0; i < count; ++i) {
        const T value = source.at(order[i], j);
        column[i] = value;
        lower = value < lower ? value : lower;
        upper = value > upper ? value : upper;
      }
      std::fill(column + count, column + capacity, infinity);
      box[0] = lower;
      box[kWidth] = upper;
    }
  }

  CutSource<Stored, T> source_;
  std::int64_t n_;
  Id* ids_;
  const TreeParts<T>& parts_;
  std::int64_t near_count_;
  std::vector<T> near_rows_;
  std::vector<Id> near_ids_;
  std::vector<std::uint32_t> order_;
  std::unique_ptr<CutRoom<T, Id>> far_room_;
  std::unique_ptr<CutRoom<T, std::uint32_t>> near_room_;
};

}  // namespace

template <class T, class Id>
void tree_below(const RowsView& points, int level, std::int64_t index, Id* ids, const TreeParts<T>& parts) {
  with_type(points.dtype, [&]<class Stored>(Stored) {
    if constexpr (kHolds<T, Stored>) Below<Stored, T, Id>(points, ids, parts).run(level, index);
  });
}

template void tree_below(const RowsView&, int, std::int64_t, std::int32_t*, const TreeParts<float>&);
template void tree_below(const RowsView&, int, std::int64_t, std::int64_t*, const TreeParts<float>&);
template void tree_below(const RowsView&, int, std::int64_t, std::int32_t*, const TreeParts<double>&);
template void tree_below(const RowsView&, int, std::int64_t, std::int64_t*, const TreeParts<double>&);

}  // namespace tonari
