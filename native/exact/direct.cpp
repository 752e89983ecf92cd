#include "exact/direct.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "exact/bounds.hpp"
#include "select/order.hpp"

namespace tonari {

namespace {

constexpr std::int64_t kBatch = 2048;  // values that are computed at a time
constexpr std::int64_t kBeyond = 64;  // points that a row may hold beyond k, or k if that is more, before it drops some
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
    copy(first, stop);
    return true;
  }

  bool serves() const { return serves_; }

  // Copies listed points [first, stop), at most kBatch.
  void copy(std::int64_t first, std::int64_t stop) {
    first_ = first;
    stop_ = stop;
    columns_.resize(static_cast<std::size_t>(search_.points.d * kBatch));
    if (search_.points.dtype == Dtype::f32) return copy_from<float>();
    row_.resize(static_cast<std::size_t>(search_.points.d));
    for (std::int64_t j = first; j < stop; ++j) {
      load_row(search_.points, search_.listed[j], row_.data());
      put(row_.data(), j - first);
    }
  }

  const double* data() const { return columns_.data(); }

 private:
  template <class T>
  void copy_from() {
    for (std::int64_t j = first_; j < stop_; ++j) {
      put(static_cast<const T*>(row_pointer(search_.points, search_.listed[j])), j - first_);
    }
  }

  template <class T>
  void put(const T* row, std::int64_t at) {
    for (std::int64_t c = 0; c < search_.points.d; ++c) columns_[static_cast<std::size_t>(c * kBatch + at)] = row[c];
  }

  const DirectSearch& search_;
  const bool serves_;
  std::int64_t first_ = -1, stop_ = -1;
  std::vector<double> columns_, row_;
};

constexpr std::int64_t kGroup = 4;  // queries that share what is loaded of the points

// A query on its way through the points.
struct Asked {
  ExactQuery query;
  std::int64_t self = -1;  // the point that it must not find
  double worst = std::numeric_limits<double>::infinity();
  std::vector<Ranked> kept;
  std::vector<float> smallest;  // estimates among the k smallest so far, and the k-th of these
  float kth = std::numeric_limits<float>::infinity();

  void open(const DirectSearch& search, std::int64_t i) {
    query = exact_query(search.metric, search.queries, i);
    self = search.self_ids != nullptr ? search.self_ids[i] : -1;
    worst = std::numeric_limits<double>::infinity();
    kept.clear();
    smallest.clear();
    kth = std::numeric_limits<float>::infinity();
  }
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
    queries_.resize(static_cast<std::size_t>(kGroup * padded(search.points.d)));
    estimates_.resize(static_cast<std::size_t>(kGroup * kBatch));
    left_.resize(kBatch);
  }

  bool serve() const { return serve_; }

  // Starts on `count` queries, at most kGroup, from query i.
  void open(std::int64_t i, std::int64_t count) {
    const std::int64_t d = search_.points.d;
    for (std::int64_t r = 0; r < count; ++r) {
      const float* const query = static_cast<const float*>(row_pointer(search_.queries, i + r));
      std::copy(query, query + d, queries_.begin() + r * padded(d));
    }
    opened_ = count;
  }

  // Estimates the next `count` points for all queries that are open.
  void estimate(std::int64_t first, std::int64_t count) {
    const float* const points = static_cast<const float*>(row_pointer(search_.points, first));
    estimate_(queries_.data(), opened_, points, search_.points.d, count, estimates_.data(), kBatch);
    first_ = first, count_ = count;
  }

  // Lists those of the estimated points that may be among the k nearest of the r-th query; false, and all, if an
  // estimate is not finite.
  bool list(std::int64_t r, Asked& asked) {
    float* const estimates = estimates_.data() + r * kBatch;
    bool finite = true;
    for (std::int64_t j = 0; j < count_; ++j) finite &= estimates[j] <= std::numeric_limits<float>::max();
    if (asked.self >= first_ && asked.self < first_ + count_) {
      estimates[asked.self - first_] = std::numeric_limits<float>::infinity();
    }
    if (finite) keep_smallest(estimates, asked);
    const float most = finite ? limit(asked.kth) : std::numeric_limits<float>::infinity();
    std::int64_t* const left = left_.data();
    std::int64_t listed = 0;
    for (std::int64_t j = 0; j < count_; ++j) {
      left[listed] = first_ + j;
      listed += !(estimates[j] > most);
    }
    listed_ = listed;
    return finite;
  }

  const std::int64_t* left() const { return left_.data(); }
  std::int64_t count() const { return listed_; }

 private:
  static constexpr std::int64_t kMostColumns = std::int64_t{1} << 18;  // with more, the error could exceed 2^-9
  static constexpr std::int64_t kLeastTimes = 4;                       // points for each neighbour

  // The largest estimate of a point that may be among the k nearest; see the header.
  float limit(float kth) const {
    const auto d = static_cast<double>(search_.points.d);
    const auto roundings = static_cast<double>(estimate_roundings(search_.points.d));
    const double most = kth * (1 + 4 * roundings * 0x1p-24 + 0x1p-19) + 8 * d * 0x1p-149 + 0x1p-140;
    return std::nextafter(static_cast<float>(most), std::numeric_limits<float>::infinity());
  }

  // Takes estimates among the k smallest so far: the k-th of these, infinity while there are fewer.
  void keep_smallest(const float* estimates, Asked& asked) const {
    float kth = asked.kth;
    for (std::int64_t j = 0; j < count_; ++j) {
      if (estimates[j] < kth) kth = keep(estimates[j], asked);
    }
    if (search_.k > kInserted && std::ssize(asked.smallest) >= search_.k) drop_beyond(asked);
  }

  // Takes an estimate below the k-th, and returns what is the k-th now, or was.
  float keep(float estimate, Asked& asked) const {
    std::vector<float>& smallest = asked.smallest;
    smallest.push_back(estimate);
    if (search_.k > kInserted) {
      if (std::ssize(smallest) == 2 * search_.k) drop_beyond(asked);
      return asked.kth;
    }
    std::size_t at = smallest.size() - 1;
    for (; at > 0 && smallest[at - 1] > estimate; --at) smallest[at] = smallest[at - 1];
    smallest[at] = estimate;
    if (std::ssize(smallest) > search_.k) smallest.pop_back();
    if (std::ssize(smallest) == search_.k) asked.kth = smallest.back();
    return asked.kth;
  }

  void drop_beyond(Asked& asked) const {
    std::vector<float>& smallest = asked.smallest;
    std::nth_element(smallest.begin(), smallest.begin() + (search_.k - 1), smallest.end());
    smallest.resize(static_cast<std::size_t>(search_.k));
    asked.kth = smallest.back();
  }

  const DirectSearch& search_;
  const bool serve_;
  SquareEstimates estimate_ = nullptr;
  std::vector<float> queries_, estimates_;
  std::vector<std::int64_t> left_;
  std::int64_t opened_ = 0, first_ = 0, count_ = 0, listed_ = 0;
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
  const std::int64_t most = estimates.serve() ? std::min(kGroup, end - begin) : 1;
  const std::int64_t room =
      k + std::max(kBeyond, k);  // so that a point is looked at a bounded number of times, for any k
  std::vector<std::int64_t> ids(static_cast<std::size_t>(batch));
  std::vector<double> values(kBatch);
  std::vector<Asked> group(static_cast<std::size_t>(std::max(most, std::int64_t{1})));
  for (Asked& asked : group) asked.kept.reserve(static_cast<std::size_t>(std::min(n, room)));

  // Puts those of `count` points, whose values are computed, among the k nearest so far.
  const auto take = [&](Asked& asked, const std::int64_t* numbers, std::int64_t count) {
    for (std::int64_t j = 0; j < count; ++j) {
      const double value = returned_value(values[static_cast<std::size_t>(j)], double_output);
      const double key = descends ? -value : value;
      // Numbers ascend: among equal keys, the points that are held already come first.
      if ((key >= asked.worst && std::ssize(asked.kept) >= k) || numbers[j] == asked.self) continue;
      if (inserts) {
        insert(asked.kept, {key, numbers[j]}, k);
        if (std::ssize(asked.kept) == k) asked.worst = asked.kept.back().key;
        continue;
      }
      asked.kept.push_back({key, numbers[j]});
      if (std::ssize(asked.kept) < room) continue;
      keep_smallest(asked.kept, k);
      asked.worst = std::max_element(asked.kept.begin(), asked.kept.end())->key;
    }
  };

  for (std::int64_t i = begin; i < end; i += most) {
    const std::int64_t rows = std::min(most, end - i);
    for (std::int64_t r = 0; r < rows; ++r) group[static_cast<std::size_t>(r)].open(search, i + r);
    if (estimates.serve()) estimates.open(i, rows);
    const bool by_columns = shared.holds(i, end);
    const std::int64_t stop = listed ? search.ends[i] : n;
    for (std::int64_t first = listed ? search.begins[i] : 0; first < stop; first += batch) {
      const std::int64_t some = std::min(batch, stop - first);
      if (estimates.serve()) estimates.estimate(first, some);
      for (std::int64_t r = 0; r < rows; ++r) {
        Asked& asked = group[static_cast<std::size_t>(r)];
        std::int64_t count = some;
        const std::int64_t* numbers = ids.data();
        if (listed) {
          numbers = search.listed + first;
        } else if (estimates.serve()) {
          const bool finite = estimates.list(r, asked);
          if (!search.checked && !finite) return false;
          numbers = estimates.left();
          count = estimates.count();
        } else {
          std::iota(ids.begin(), ids.begin() + count, first);
        }
        if (by_columns) {
          compute_columns(search.metric, asked.query, shared.data(), kBatch, search.points.d, count, values.data());
        } else {
          compute(search.metric, asked.query, search.points, numbers, count, values.data());
        }
        take(asked, numbers, count);
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      std::vector<Ranked>& kept = group[static_cast<std::size_t>(r)].kept;
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
  }
  return true;
}

namespace {

// Calls take(value, point) for each point that is within the radius of query i.
template <class Take>
class RadiusRows {
 public:
  RadiusRows(const DirectRadius& search, Take take)
      : search_(search),
        take_(take),
        compute_(exact_values(search.isa)),
        descends_(is_descending(search.metric)),
        double_output_(search.queries.dtype == Dtype::f64 || search.points.dtype == Dtype::f64),
        ids_(static_cast<std::size_t>(std::min(search.points.n, kBatch))),
        values_(ids_.size()) {}

  void run(std::int64_t i) {
    const std::int64_t n = search_.points.n, self = search_.self_ids != nullptr ? search_.self_ids[i] : -1;
    const double limit = search_.limits[i];
    const ExactQuery query = exact_query(search_.metric, search_.queries, i);
    if (search_.allowed != nullptr) row_.open(*search_.allowed, i);
    for (std::int64_t first = search_.later ? std::clamp<std::int64_t>(self + 1, 0, n) : 0; first < n;
         first += kBatch) {
      const std::int64_t count = std::min(kBatch, n - first);
      std::iota(ids_.begin(), ids_.begin() + count, first);
      compute_(search_.metric, query, search_.points, ids_.data(), count, values_.data());
      for (std::int64_t j = 0; j < count; ++j) {
        const double value = returned_value(values_[static_cast<std::size_t>(j)], double_output_);
        if (!(descends_ ? value >= limit : value <= limit) || first + j == self) continue;
        if (search_.allowed == nullptr || allows(row_, first + j)) take_(value, first + j);
      }
    }
  }

 private:
  const DirectRadius& search_;
  Take take_;
  const ExactValues compute_;
  const bool descends_, double_output_;
  std::vector<std::int64_t> ids_;
  std::vector<double> values_;
  AllowedRow row_;
};

}  // namespace

template <class Value, class Index>
std::int64_t find_directly(const DirectRadius& search, std::int64_t* indptr, Value* distances, Index* indices) {
  const bool descends = is_descending(search.metric);
  std::vector<Ranked> found;
  RadiusRows rows(search, [&](double value, std::int64_t id) { found.push_back({descends ? -value : value, id}); });
  std::int64_t total = indptr[0] = 0;
  for (std::int64_t i = 0; i < search.queries.n; ++i) {
    found.clear();
    rows.run(i);
    sort_ranked(found);
    for (const Ranked& item : found) {
      distances[total] = static_cast<Value>(descends ? -item.key : item.key) + Value{0};  // no negative zero
      indices[total++] = static_cast<Index>(item.id);
    }
    indptr[i + 1] = total;
  }
  return total;
}

void count_directly(const DirectRadius& search, std::int64_t* counts) {
  std::int64_t count = 0;
  RadiusRows rows(search, [&](double, std::int64_t) { ++count; });
  for (std::int64_t i = 0; i < search.queries.n; ++i) {
    count = 0;
    rows.run(i);
    counts[i] = count;
  }
}

template std::int64_t find_directly(const DirectRadius&, std::int64_t*, float*, std::int32_t*);
template std::int64_t find_directly(const DirectRadius&, std::int64_t*, float*, std::int64_t*);
template std::int64_t find_directly(const DirectRadius&, std::int64_t*, double*, std::int32_t*);
template std::int64_t find_directly(const DirectRadius&, std::int64_t*, double*, std::int64_t*);

void count_listed(const DirectSearch& search, const double* limits, std::int64_t* counts) {
  const ExactValues compute = exact_values(search.isa);
  const ColumnValues compute_columns = column_values(search.isa);
  const bool descends = is_descending(search.metric);
  const bool double_output = search.queries.dtype == Dtype::f64 || search.points.dtype == Dtype::f64;
  SharedColumns shared(search);
  std::vector<double> values(kBatch);
  for (std::int64_t i = 0; i < search.queries.n; ++i) {
    const ExactQuery query = exact_query(search.metric, search.queries, i);
    const bool is_copied = shared.holds(i, search.queries.n);
    std::int64_t inside = 0;
    for (std::int64_t first = search.begins[i]; first < search.ends[i]; first += kBatch) {
      const std::int64_t count = std::min(kBatch, search.ends[i] - first);
      if (shared.serves()) {
        if (!is_copied) shared.copy(first, first + count);
        compute_columns(search.metric, query, shared.data(), kBatch, search.points.d, count, values.data());
      } else {
        compute(search.metric, query, search.points, search.listed + first, count, values.data());
      }
      for (std::int64_t j = 0; j < count; ++j) {
        const double value = returned_value(values[static_cast<std::size_t>(j)], double_output);
        inside += descends ? value >= limits[i] : value <= limits[i];
      }
    }
    counts[i] = inside;
  }
}

template bool search_directly(const DirectSearch&, std::int64_t, std::int64_t, float*, std::int32_t*);
template bool search_directly(const DirectSearch&, std::int64_t, std::int64_t, float*, std::int64_t*);
template bool search_directly(const DirectSearch&, std::int64_t, std::int64_t, double*, std::int32_t*);
template bool search_directly(const DirectSearch&, std::int64_t, std::int64_t, double*, std::int64_t*);

}  // namespace tonari
