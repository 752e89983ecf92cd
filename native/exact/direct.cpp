#include "exact/direct.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/room.hpp"
#include "exact/bounds.hpp"
#include "exact/key_lists.hpp"
#include "select/float_keys.hpp"
#include "select/order.hpp"

namespace tonari {

namespace {

constexpr std::int64_t kBatch = KeyLists::batch;  // number of values that are computed together
constexpr std::int64_t kBeyond = 64;    // a row's list is shortened when it has max(k, kBeyond) points more than k
constexpr std::int64_t kInserted = 32;  // up to this k, neighbours are kept in order, and each new one is inserted
constexpr std::int64_t kShared = 8;     // fewest queries that share a list for which its columns are copied

// Inserts an item into the sorted k smallest items, after all items that are no larger.
void insert(std::vector<Ranked>& kept, const Ranked& item, std::int64_t k) {
  if (std::ssize(kept) < k) kept.push_back(item);
  std::size_t at = kept.size() - 1;
  for (; at > 0 && kept[at - 1].key > item.key; --at) kept[at] = kept[at - 1];
  kept[at] = item;
}

// A list of points with few columns, copied column by column for the many successive queries that share it.
class SharedColumns {
 public:
  explicit SharedColumns(const DirectSearch& search)
      : search_(search),
        serves_(search.listed != nullptr && search.points.d <= kFewColumns && !is_angular(search.metric)) {}

  // Whether the copy has the list of query i; first copies the list if enough of the next queries, up to `end`, share
  // it.
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

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// kGroup queries share a batch of points, whose kBatchBytes stay in the second-level cache. More than four queries share
// one only if all their lists together have at most kListed entries.
constexpr std::int64_t kGroup = 16, kListed = std::int64_t{1} << 20;
constexpr std::int64_t kBatchBytes = std::int64_t{1} << 19, kLeastBatch = 64;

// A query and the points that it has found so far.
struct Asked {
  ExactQuery query;
  std::int64_t self = -1;  // the point that it must not find, or -1
  double worst = kInfinity;
  std::vector<Ranked> kept;
  // The points whose estimates were at most `most` when they were added: the bits of their estimates, and their
  // numbers.
  Room<std::int32_t> keys, numbers;
  std::int64_t gathered = 0, taken = 0;
  float most = kInfinity;
  bool whole = false;  // whether an estimate was not finite: exact values of all points are then computed

  void open(const DirectSearch& search, std::int64_t i) {
    query = exact_query(search.metric, search.queries, i);
    self = search.self_ids != nullptr ? search.self_ids[i] : -1;
    most = kInfinity;
    gathered = taken = 0;
    whole = false;
    forget();
  }

  void forget() {
    kept.clear();
    worst = kInfinity;
  }
};

// Estimates of squared distances, and the points that they do not rule out: after each batch by the k smallest
// estimates so far, and finally by the k smallest of all.
class Estimates {
 public:
  explicit Estimates(const DirectSearch& search)
      : search_(search),
        serve_(search.listed == nullptr && search.queries.dtype == Dtype::f32 && search.points.dtype == Dtype::f32 &&
               family_of(search.metric) == Family::squares && search.points.d <= kMostColumns &&
               kLeastTimes * search.k <= search.points.n &&
               search.points.n <= std::numeric_limits<std::int32_t>::max()),
        lists_(key_lists(search.isa)) {
    if (serve_) estimate_ = square_estimates(search.isa);
  }

  bool serve() const { return serve_; }

  // Makes room for `most` queries and batches of `batch` points, so that a query of few points needs little memory.
  void reserve(std::int64_t most, std::int64_t batch) {
    batch_ = batch;
    queries_.resize(static_cast<std::size_t>(most * padded(search_.points.d)));
    estimates_.resize(static_cast<std::size_t>(most * batch));
  }

  // Starts `count` queries from query i on, at most as many as reserve() made room for.
  void open(std::int64_t i, std::int64_t count) {
    const std::int64_t d = search_.points.d;
    for (std::int64_t r = 0; r < count; ++r) {
      const float* const query = static_cast<const float*>(row_pointer(search_.queries, i + r));
      std::copy(query, query + d, queries_.begin() + r * padded(d));
    }
    opened_ = count;
  }

  // Estimates the distances of `count` points, from `first` on, to all open queries.
  void estimate(std::int64_t first, std::int64_t count) {
    const float* const points = static_cast<const float*>(row_pointer(search_.points, first));
    estimate_(queries_.data(), opened_, points, search_.points.d, count, estimates_.data(), batch_);
    first_ = first, count_ = count;
  }

  // Adds to the r-th query the estimated points that may be among its k nearest; it then has at most 2 k points and one
  // batch. Returns false if an estimate is not finite.
  bool add(std::int64_t r, Asked& asked) const {
    const std::int64_t most = std::min(2 * search_.k + kBatch, search_.points.n), here = asked.self - first_;
    const std::int64_t room = most + KeyLists::spill;
    std::int32_t* const keys = asked.keys.get(room) + asked.gathered;
    std::int32_t* const numbers = asked.numbers.get(room) + asked.gathered;
    const std::int64_t added =
        lists_.append(estimates_.data() + r * batch_, count_, here >= 0 && here < count_ ? here : -1,
                      static_cast<std::int32_t>(first_), float_key(asked.most), keys, numbers);
    if (added >= 0) asked.gathered += added;
    return added >= 0;
  }

  // Lists the numbers of the points, of the next `count`, that may be within the distance whose square is `squared`:
  // their estimates are at most that of such a point. Returns how many; -1 if an estimate is not finite.
  std::int64_t within(std::int64_t first, std::int64_t count, double squared, Asked& asked) {
    estimate(first, count);
    asked.most = limit(static_cast<float>(squared));
    asked.gathered = 0;
    return add(0, asked) ? asked.gathered : -1;
  }

  // Drops the points that more than k + slack estimates rule out.
  void drop_beyond(Asked& asked, std::int64_t slack) const {
    if (asked.gathered < search_.k) return;
    std::int32_t* const keys = asked.keys.get(0);
    const std::int32_t kth = lists_.bound(keys, asked.gathered, search_.k, slack);
    asked.most = std::min(asked.most, limit(key_float(kth)));
    asked.gathered = lists_.drop(float_key(asked.most), keys, asked.numbers.get(0), asked.gathered);
  }

 private:
  // with more columns, the relative error could exceed 2^-9
  static constexpr std::int64_t kMostColumns = std::int64_t{1} << 18;
  static constexpr std::int64_t kLeastTimes = 2;  // estimates need at least this many points for each neighbour

  // The largest estimate of a point that may be among the k nearest; see the header.
  float limit(float kth) const {
    const auto d = static_cast<double>(search_.points.d);
    const auto roundings = static_cast<double>(estimate_roundings(search_.points.d));
    const double most = kth * (1 + 4 * roundings * 0x1p-24 + 0x1p-19) + 8 * d * 0x1p-149 + 0x1p-140;
    return std::nextafter(static_cast<float>(most), kInfinity);
  }

  const DirectSearch& search_;
  const bool serve_;
  const KeyLists lists_;
  SquareEstimates estimate_ = nullptr;
  std::vector<float> queries_, estimates_;
  std::int64_t batch_ = 0, opened_ = 0, first_ = 0, count_ = 0;
};

}  // namespace

template <class Value, class Index>
bool search_directly(const DirectSearch& search, std::int64_t begin, std::int64_t end, Value* distances,
                     Index* indices) {
  const ExactValues compute = exact_values(search.isa);
  const ColumnValues compute_columns = column_values(search.isa);
  SharedColumns shared(search);
  Estimates estimates(search);
  const bool checked = search.unchecked == DirectSearch::Unchecked::none;
  if (!checked && !estimates.serve()) {
    if (is_refused(search.queries)) return false;
    if (search.unchecked == DirectSearch::Unchecked::all && is_refused(search.points)) return false;
  }
  const bool double_output = sizeof(Value) == sizeof(double), descends = is_descending(search.metric);
  const std::int64_t n = search.points.n, k = search.k;
  const std::int64_t cached = kBatchBytes / (static_cast<std::int64_t>(sizeof(float)) * search.points.d);
  const std::int64_t batch = std::min(n, estimates.serve() ? std::clamp(cached, kLeastBatch, kBatch) : kBatch);
  const bool listed = search.listed != nullptr, inserts = (listed || estimates.serve()) && k <= kInserted;
  const std::int64_t together = std::clamp<std::int64_t>(kListed / (2 * k + kBatch), 4, kGroup);
  const std::int64_t most = estimates.serve() ? std::min(together, end - begin) : 1;
  const std::int64_t room =
      k + std::max(kBeyond, k);  // so that points are examined a bounded number of times for any k
  std::vector<std::int64_t> ids(static_cast<std::size_t>(batch));
  // Values of copied columns are written a register at a time.
  std::vector<double> values(static_cast<std::size_t>(listed ? kBatch : batch));
  if (estimates.serve()) estimates.reserve(most, batch);
  std::vector<Asked> group(static_cast<std::size_t>(std::max(most, std::int64_t{1})));
  for (Asked& asked : group) asked.kept.reserve(static_cast<std::size_t>(std::min(n, room)));

  // Adds the points among these `count` that are nearer than the k nearest so far; their values are computed.
  const auto take = [&](Asked& asked, const std::int64_t* numbers, std::int64_t count) {
    for (std::int64_t j = 0; j < count; ++j) {
      const double value = returned_value(values[static_cast<std::size_t>(j)], double_output);
      const double key = descends ? -value : value;
      // Numbers ascend: among equal keys, earlier points come first.
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

  // Computes the values of the points below `stop` that estimates did not rule out, and takes the nearest.
  const auto take_gathered = [&](Asked& asked, std::int64_t stop) {
    const std::int32_t* const numbers = asked.numbers.get(0);
    while (asked.taken < asked.gathered && numbers[asked.taken] < stop) {
      std::int64_t count = 0;
      for (; count < batch && asked.taken < asked.gathered && numbers[asked.taken] < stop; ++count) {
        ids[static_cast<std::size_t>(count)] = numbers[asked.taken++];
      }
      compute(search.metric, asked.query, search.points, ids.data(), count, values.data());
      take(asked, ids.data(), count);
    }
  };
  const auto take_all = [&](Asked& asked) {
    asked.forget();
    for (std::int64_t first = 0; first < n; first += batch) {
      const std::int64_t count = std::min(batch, n - first);
      std::iota(ids.begin(), ids.begin() + count, first);
      compute(search.metric, asked.query, search.points, ids.data(), count, values.data());
      take(asked, ids.data(), count);
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
        if (estimates.serve()) {
          if (asked.whole) continue;
          asked.whole = !estimates.add(r, asked);
          if (!checked && estimates.serve() && asked.whole) return false;
          if (asked.gathered < 2 * k) continue;
          estimates.drop_beyond(asked, k / 8);
          if (asked.gathered <= k + k / 2) continue;
          take_gathered(asked, n);  // estimates are nearly equal, and rule out few points
          asked.gathered = asked.taken = 0;
          continue;
        }
        std::int64_t count = some;
        const std::int64_t* numbers = ids.data();
        if (listed) {
          numbers = search.listed + first;
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
    if (estimates.serve()) {
      for (std::int64_t r = 0; r < rows; ++r) estimates.drop_beyond(group[static_cast<std::size_t>(r)], 0);
      // If several queries need the same points, all of them read a point while it is in the cache.
      const std::int64_t step = k * rows >= 2 * n ? batch : n;
      for (std::int64_t first = 0; first < n; first += step) {
        for (std::int64_t r = 0; r < rows; ++r) take_gathered(group[static_cast<std::size_t>(r)], first + step);
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      Asked& asked = group[static_cast<std::size_t>(r)];
      if (asked.whole) take_all(asked);
      std::vector<Ranked>& kept = asked.kept;
      if (!inserts) {
        if (std::ssize(kept) > k + k / 2) keep_smallest(kept, k);  // sorting fewer takes less time
        sort_ranked(kept);
        if (std::ssize(kept) > k) kept.resize(static_cast<std::size_t>(k));
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
        estimated_{search.metric, search.isa, search.queries, search.points, 1, nullptr},
        estimates_(estimated_),
        batch_(std::min(search.points.n, kBatch)),
        ids_(static_cast<std::size_t>(batch_)),
        values_(ids_.size()) {
    if (estimates_.serve()) estimates_.reserve(1, batch_);
  }

  void run(std::int64_t i) {
    const std::int64_t n = search_.points.n, self = search_.self_ids != nullptr ? search_.self_ids[i] : -1;
    const double limit = search_.limits[i], squared = takes_root(search_.metric) ? limit * limit : limit;
    const bool by_estimates = estimates_.serve() && limit >= 0 && squared <= kMostSquared;
    const ExactQuery query = exact_query(search_.metric, search_.queries, i);
    if (by_estimates) estimates_.open(i, 1);
    if (search_.allowed != nullptr) row_.open(*search_.allowed, i);
    for (std::int64_t first = search_.later ? std::clamp<std::int64_t>(self + 1, 0, n) : 0; first < n;
         first += batch_) {
      const std::int64_t count = std::min(batch_, n - first);
      std::int64_t left = by_estimates ? estimates_.within(first, count, squared, asked_) : -1;
      if (left >= 0) {
        std::copy_n(asked_.numbers.get(0), left, ids_.begin());
      } else {
        left = count;
        std::iota(ids_.begin(), ids_.begin() + count, first);
      }
      compute_(search_.metric, query, search_.points, ids_.data(), left, values_.data());
      for (std::int64_t j = 0; j < left; ++j) {
        const double value = returned_value(values_[static_cast<std::size_t>(j)], double_output_);
        const std::int64_t id = ids_[static_cast<std::size_t>(j)];
        if (!(descends_ ? value >= limit : value <= limit) || id == self) continue;
        if (search_.allowed == nullptr || allows(row_, id)) take_(value, id);
      }
    }
  }

 private:
  static constexpr double kMostSquared = 1e37;  // largest squared radius for which no limit of estimates overflows

  const DirectRadius& search_;
  Take take_;
  const ExactValues compute_;
  const bool descends_, double_output_;
  const DirectSearch estimated_;
  Estimates estimates_;
  Asked asked_;
  const std::int64_t batch_;
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

template <class Value>
bool are_plain(const Value* values, std::int64_t count) {
  constexpr Value least = Value(1e-37), most = Value(3e38);
  std::int64_t plain = 0;  // not a bool, so that the compiler keeps it in lanes
  for (std::int64_t i = 0; i < count; ++i) {
    const Value magnitude = std::abs(values[i]);
    plain += magnitude > least && magnitude < most;
  }
  return plain == count;
}

template bool are_plain(const float*, std::int64_t);
template bool are_plain(const double*, std::int64_t);

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
