#include "exact/direct.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "exact/bounds.hpp"
#include "select/order.hpp"

namespace tonari {

namespace {

constexpr std::int64_t kBatch = 2048;   // values that are computed at a time
constexpr std::int64_t kBeyond = 64;    // points that a row may hold beyond k before it drops some
constexpr std::int64_t kInserted = 32;  // so few neighbours from a list stay in order, each put into its place
constexpr std::int64_t kShared = 8;     // queries of one list that make its columns worth a copy

// Puts an item behind those that are no larger, of the k smallest in order.
void insert(std::vector<Ranked>& kept, const Ranked& item, std::int64_t k) {
  if (std::ssize(kept) < k) kept.push_back(item);
  std::size_t at = kept.size() - 1;
  for (; at > 0 && kept[at - 1].key > item.key; --at) kept[at] = kept[at - 1];
  kept[at] = item;
}

// Points of few columns that many queries in a row are compared with, copied column by column.
class SharedColumns {
 public:
  explicit SharedColumns(const DirectSearch& search)
      : search_(search),
        serves_(search.listed != nullptr && search.points.d <= kFewColumns && !is_angular(search.metric)) {}

  // Whether the list of query i, of [begin, end), is at hand; it is copied if the next queries have it, too.
  bool holds(std::int64_t i, std::int64_t end) {
    if (!serves_) return false;
    const std::int64_t first = search_.begins[i], stop = search_.ends[i];
    if (first == first_ && stop == stop_) return true;
    const std::int64_t later = i + kShared - 1;
    if (stop - first > std::min(search_.points.n, kBatch) || later >= end || search_.begins[later] != first ||
        search_.ends[later] != stop) {
      return false;
    }
    first_ = first;
    stop_ = stop;
    columns_.resize(static_cast<std::size_t>(search_.points.d * kBatch));
    row_.resize(static_cast<std::size_t>(search_.points.d));
    for (std::int64_t j = first; j < stop; ++j) {
      load_row(search_.points, search_.listed[j], row_.data());
      for (std::int64_t c = 0; c < search_.points.d; ++c) {
        columns_[static_cast<std::size_t>(c * kBatch + j - first)] = row_[static_cast<std::size_t>(c)];
      }
    }
    return true;
  }

  const double* data() const { return columns_.data(); }

 private:
  const DirectSearch& search_;
  const bool serves_;
  std::int64_t first_ = -1, stop_ = -1;
  std::vector<double> columns_, row_;
};

// The points that estimates leave to a query, batch by batch: each by the k smallest estimates up to its end.
class Estimates {
 public:
  explicit Estimates(const DirectSearch& search)
      : search_(search),
        serve_(search.listed == nullptr && search.queries.dtype == Dtype::f32 && search.points.dtype == Dtype::f32 &&
               family_of(search.metric) == Family::squares && search.points.d <= kMostColumns &&
               kLeastTimes * search.k <= search.points.n) {
    if (!serve_) return;
    estimate_ = square_estimates(search.isa);
    const std::int64_t group = search.points.n <= kBatch ? kGroup : 1;
    queries_.resize(static_cast<std::size_t>(group * padded(search.points.d)));
    room_.resize(static_cast<std::size_t>(group * kBatch));
    estimates_ = room_.data();
    left_.resize(kBatch);
  }

  bool serve() const { return serve_; }

  // Starts on query i of those up to `end`, in their order; it must not find the point `self`.
  void open(std::int64_t i, std::int64_t end, std::int64_t self) {
    const std::int64_t n = search_.points.n;
    if (n > kBatch) {
      load(i, i + 1);
    } else {  // the next ones share what is loaded of the points
      if (i >= opened_) {
        begin_ = i;
        opened_ = std::min(i + kGroup, end);
        load(begin_, opened_);
        estimate(0, n, opened_ - begin_);
      }
      estimates_ = room_.data() + (i - begin_) * kBatch;
    }
    self_ = self;
    smallest_.clear();
    kth_ = std::numeric_limits<float>::infinity();
  }

  // Lists those of the next `count` points that may be among the k nearest; false, and all, if an estimate is not finite.
  bool list(std::int64_t first, std::int64_t count) {
    if (search_.points.n > kBatch) estimate(first, count, 1);
    float* const estimates = estimates_;
    bool finite = true;
    for (std::int64_t j = 0; j < count; ++j) finite &= estimates[j] <= std::numeric_limits<float>::max();
    if (self_ >= first && self_ < first + count) estimates[self_ - first] = std::numeric_limits<float>::infinity();
    if (finite) keep_smallest_of(count);
    const float most = finite ? limit() : std::numeric_limits<float>::infinity();
    std::int64_t* const left = left_.data();
    std::int64_t listed = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      left[listed] = first + j;
      listed += !(estimates[j] > most);
    }
    count_ = listed;
    return finite;
  }

  const std::int64_t* left() const { return left_.data(); }
  std::int64_t count() const { return count_; }

 private:
  static constexpr std::int64_t kMostColumns = std::int64_t{1} << 18;  // with more, the error could exceed 2^-9
  static constexpr std::int64_t kLeastTimes = 4;                       // points for each neighbour

  static constexpr std::int64_t kGroup = 4;  // queries that are estimated together, if all points are one batch

  void load(std::int64_t begin, std::int64_t end) {
    const std::int64_t d = search_.points.d, width = padded(d);
    for (std::int64_t i = begin; i < end; ++i) {
      const float* const query = static_cast<const float*>(row_pointer(search_.queries, i));
      std::copy(query, query + d, queries_.begin() + (i - begin) * width);
    }
  }

  void estimate(std::int64_t first, std::int64_t count, std::int64_t queries) {
    const float* const points = static_cast<const float*>(row_pointer(search_.points, first));
    estimate_(queries_.data(), queries, points, search_.points.d, count, room_.data(), kBatch);
  }

  // The largest estimate of a point that may be among the k nearest; see the header.
  float limit() const {
    const auto d = static_cast<double>(search_.points.d);
    const auto roundings = static_cast<double>(estimate_roundings(search_.points.d));
    const double most = kth_ * (1 + 4 * roundings * 0x1p-24 + 0x1p-19) + 8 * d * 0x1p-149 + 0x1p-140;
    return std::nextafter(static_cast<float>(most), std::numeric_limits<float>::infinity());
  }

  // Takes estimates among the k smallest so far: the k-th of these, infinity while there are fewer.
  void keep_smallest_of(std::int64_t count) {
    const float* const estimates = estimates_;
    float kth = kth_;
    for (std::int64_t j = 0; j < count; ++j) {
      if (estimates[j] < kth) kth = keep(estimates[j]);
    }
    if (search_.k > kInserted && std::ssize(smallest_) >= search_.k) drop_beyond();
  }

  // Takes an estimate below the k-th, and returns what is the k-th now, or was.
  float keep(float estimate) {
    smallest_.push_back(estimate);
    if (search_.k > kInserted) {
      if (std::ssize(smallest_) == 2 * search_.k) drop_beyond();
      return kth_;
    }
    std::size_t at = smallest_.size() - 1;
    for (; at > 0 && smallest_[at - 1] > estimate; --at) smallest_[at] = smallest_[at - 1];
    smallest_[at] = estimate;
    if (std::ssize(smallest_) > search_.k) smallest_.pop_back();
    if (std::ssize(smallest_) == search_.k) kth_ = smallest_.back();
    return kth_;
  }

  void drop_beyond() {
    std::nth_element(smallest_.begin(), smallest_.begin() + (search_.k - 1), smallest_.end());
    smallest_.resize(static_cast<std::size_t>(search_.k));
    kth_ = smallest_.back();
  }

  const DirectSearch& search_;
  const bool serve_;
  SquareEstimates estimate_ = nullptr;
  std::vector<float> queries_, room_, smallest_;
  float* estimates_ = nullptr;             // of the query at hand
  std::int64_t begin_ = -1, opened_ = -1;  // queries whose estimates are in the room
  std::vector<std::int64_t> left_;
  std::int64_t count_ = 0, self_ = -1;
  float kth_ = 0;
};

}  // namespace

template <class Value, class Index>
bool search_directly(const DirectSearch& search, std::int64_t begin, std::int64_t end, Value* distances,
                     Index* indices) {
  const ExactValues compute = exact_values(search.isa);
  const ColumnValues compute_columns = column_values(search.isa);
  SharedColumns shared(search);
  Estimates estimates(search);
  if (!search.checked && !estimates.serve()) return false;
  const bool double_output = sizeof(Value) == sizeof(double), descends = is_descending(search.metric);
  const std::int64_t n = search.points.n, k = search.k, batch = std::min(n, kBatch);
  const bool listed = search.listed != nullptr, inserts = (listed || estimates.serve()) && k <= kInserted;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(batch));
  std::vector<double> values(kBatch);
  std::vector<Ranked> kept;
  kept.reserve(static_cast<std::size_t>(std::min(n, k + kBeyond)));
  for (std::int64_t i = begin; i < end; ++i) {
    const ExactQuery query = exact_query(search.metric, search.queries, i);
    const std::int64_t self = search.self_ids != nullptr ? search.self_ids[i] : -1;
    double worst = std::numeric_limits<double>::infinity();
    const bool by_columns = shared.holds(i, end);
    const std::int64_t stop = listed ? search.ends[i] : n;
    kept.clear();
    if (estimates.serve()) estimates.open(i, end, self);
    for (std::int64_t first = listed ? search.begins[i] : 0; first < stop; first += batch) {
      std::int64_t count = std::min(batch, stop - first);
      const std::int64_t* numbers = ids.data();
      if (listed) {
        numbers = search.listed + first;
      } else if (estimates.serve()) {
        const bool finite = estimates.list(first, count);
        if (!search.checked && !finite) return false;
        numbers = estimates.left();
        count = estimates.count();
      } else {
        std::iota(ids.begin(), ids.begin() + count, first);
      }
      if (by_columns) {
        compute_columns(search.metric, query, shared.data(), kBatch, search.points.d, count, values.data());
      } else {
        compute(search.metric, query, search.points, numbers, count, values.data());
      }
      for (std::int64_t j = 0; j < count; ++j) {
        const double value = returned_value(values[static_cast<std::size_t>(j)], double_output);
        const double key = descends ? -value : value;
        // Numbers ascend: among equal keys, the points that are held already come first.
        if ((key >= worst && std::ssize(kept) >= k) || numbers[j] == self) continue;
        if (inserts) {
          insert(kept, {key, numbers[j]}, k);
          if (std::ssize(kept) == k) worst = kept.back().key;
          continue;
        }
        kept.push_back({key, numbers[j]});
        if (std::ssize(kept) < k + kBeyond) continue;
        keep_smallest(kept, k);
        worst = std::max_element(kept.begin(), kept.end())->key;
      }
    }
    if (!inserts) {
      keep_smallest(kept, k);
      sort_ranked(kept);
    }
    for (const Ranked& item : kept) {
      *distances++ = static_cast<Value>(descends ? -item.key : item.key) + Value{0};  // no negative zero
      *indices++ = static_cast<Index>(item.id);
    }
    constexpr Value nowhere = std::numeric_limits<Value>::infinity();
    for (std::int64_t j = std::ssize(kept); j < k; ++j) {
      *distances++ = descends ? -nowhere : nowhere;
      *indices++ = Index{-1};
    }
  }
  return true;
}

template bool search_directly(const DirectSearch&, std::int64_t, std::int64_t, float*, std::int32_t*);
template bool search_directly(const DirectSearch&, std::int64_t, std::int64_t, float*, std::int64_t*);
template bool search_directly(const DirectSearch&, std::int64_t, std::int64_t, double*, std::int32_t*);
template bool search_directly(const DirectSearch&, std::int64_t, std::int64_t, double*, std::int64_t*);

}  // namespace tonari
