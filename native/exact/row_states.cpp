#include "exact/row_states.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "select/float_keys.hpp"

namespace tonari {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNoThreshold = std::numeric_limits<float>::max();  // finite, so that padding at infinity never passes
constexpr std::int64_t kPage = 4096 / static_cast<std::int64_t>(sizeof(Survivor));
constexpr std::size_t kPadding = 64;  // the widest tile of queries

// Number of survivors that are resolved at once, or half of k if that is more: kProbed after a contracted screen, to
// lower the threshold; kResolved at the end of any search, when fewer would be prefetched too late.
constexpr std::int64_t kProbed = 8, kResolved = 16;

// For a first threshold: the least number of points around a place that are compared in the sketch, and the number of
// exact values for each wanted neighbour.
constexpr std::int64_t kAround = 512, kExpected = 2;

}  // namespace

RowStates::RowStates(const Form& form, const RowsView& queries, const RowsView& points, const SearchSpec& spec, Isa isa)
    : form_(form),
      queries_(queries),
      points_(points),
      spec_(spec),
      bounds_(form, spec.double_output),
      exact_values_(exact_values(isa)),
      lists_(key_lists(isa)),
      wanted_(spec.k + (spec.self_ids != nullptr ? 1 : 0)),
      rooms_(spec.growth) {}

void RowStates::open(std::int64_t begin, std::int64_t count, std::int64_t room) {
  begin_ = begin, count_ = count;
  if (const std::int64_t known = std::ssize(rows_); known < count) {
    const std::int64_t size = 2 * wanted_ + room;
    rows_.resize(static_cast<std::size_t>(count)), slots_.resize(rows_.size());
    Survivor* next = rooms_.first_rooms(count - known, size);
    for (std::int64_t r = known; r < count; ++r, next += size) {
      Row& row = rows_[static_cast<std::size_t>(r)];
      row.survivors = next;
      row.held = size;
      set_room(r, size);
    }
  }
  thresholds_.assign(static_cast<std::size_t>(count) + kPadding, -kInfinity);
  for (std::int64_t r = 0; r < count; ++r) {
    Row& row = rows_[static_cast<std::size_t>(r)];
    row.was_sampled = row.retries = row.beyond = row.known = false;
    row.resolved = 0;
    row.settled.clear();
    keep_first(r, 0);
  }
}

void RowStates::set_room(std::int64_t r, std::int64_t room) {
  const auto at = static_cast<std::size_t>(r);
  rows_[at].room = room;
  slots_[at].end = rows_[at].survivors + room;
}

bool RowStates::grow(std::int64_t r, std::int64_t room) {
  Row& row = rows_[static_cast<std::size_t>(r)];
  if (room > row.held) {
    // Without a limit, a row that needs a page or more is moved only once more, because untouched pages take no memory.
    const std::int64_t size = spec_.growth == kNoLimit && room > kPage ? spec_.capacity : room;
    Survivor* const larger = rooms_.take(size);
    if (larger == nullptr) return false;
    const std::span<Survivor> held = survivors(r);
    std::copy(held.begin(), held.end(), larger);
    if (row.grown) rooms_.give_back(row.survivors, row.held);
    row.survivors = larger;
    row.held = size;
    row.grown = true;
    keep_first(r, std::ssize(held));
  }
  set_room(r, room);
  return true;
}

void RowStates::start(std::int64_t r, double shift, bool beyond) {
  Row& row = rows_[static_cast<std::size_t>(r)];
  row.shift = shift;
  row.beyond = beyond;
  set_threshold(r, beyond ? -kInfinity : kNoThreshold);
}

void RowStates::know(std::int64_t r, double value) {
  const auto at = static_cast<std::size_t>(r);
  rows_[at].known = true;
  if (std::isfinite(value)) lower_threshold(r, value);
}

void RowStates::lower_threshold(std::int64_t r, double value) {
  const auto at = static_cast<std::size_t>(r);
  set_threshold(r, std::min(thresholds_[at], bounds_.threshold_from_value(value, rows_[at].shift)));
}

// Lowers a threshold while other threads may read it: an old value only lets more points pass.
void RowStates::set_threshold(std::int64_t r, float value) {
  std::atomic_ref<float>(thresholds_[static_cast<std::size_t>(r)]).store(value, std::memory_order_relaxed);
}

void RowStates::make_room(std::int64_t r, bool sampling, Scratch& scratch) {
  Row& row = rows_[static_cast<std::size_t>(r)];
  condense(r, sampling ? spec_.sample_rank : wanted_, scratch);
  const std::int64_t held = std::ssize(survivors(r)), room = row.room;
  if (held * 4 <= room * 3) return;
  const bool may_grow = room < spec_.capacity;
  if (may_grow && grow(r, std::min(room * 2, spec_.capacity))) return;
  // If the shared room is smaller than the capacity of the rows, resolving a row's survivors takes less time than
  // another pass over all points.
  row.resolved += held;
  if (spec_.may_retry && (!may_grow || row.resolved > spec_.capacity)) {
    row.retries = true;
    keep_first(r, 0);
    set_threshold(r, -kInfinity);
  } else {
    settle(r, scratch);
  }
}

void RowStates::condense(std::int64_t r, std::int64_t rank, Scratch& scratch) {
  const auto at = static_cast<std::size_t>(r);
  if (form_.contracts()) {
    const std::int64_t settled = std::ssize(rows_[at].settled);
    if (std::ssize(survivors(r)) + settled < wanted_) return;
    return resolve_lowest(r, settled < spec_.k ? wanted_ - settled : std::max(kProbed, spec_.k / 2), scratch);
  }
  const std::span<Survivor> held = survivors(r);
  if (std::ssize(held) < rank) return;
  scratch.keys.resize(held.size());
  std::transform(held.begin(), held.end(), scratch.keys.begin(),
                 [](const Survivor& survivor) { return float_key(survivor.upper); });
  // The threshold need not be the rank-th smallest bound itself: a value slightly above it suffices.
  const float kth = key_float(lists_.bound(scratch.keys.data(), std::ssize(held), rank, rank / 8));
  const float bound = bounds_.threshold_from_score(static_cast<double>(kth), rows_[at].shift);
  set_threshold(r, std::min(thresholds_[at], bound));
  drop_above_threshold(r);
}

void RowStates::resolve_lowest(std::int64_t r, std::int64_t count, Scratch& scratch) {
  Row& row = rows_[static_cast<std::size_t>(r)];
  const std::span<Survivor> held = survivors(r);
  count = std::min(count, std::ssize(held));
  std::nth_element(held.begin(), held.begin() + count, held.end(),
                   [](const Survivor& a, const Survivor& b) { return a.lower < b.lower; });
  scratch.ranked.assign(row.settled.begin(), row.settled.end());
  scratch.ids.clear();
  for (const Survivor& survivor : held.first(static_cast<std::size_t>(count))) scratch.ids.push_back(survivor.id);
  rank_exactly(r, scratch);
  row.resolved += count;
  std::copy(held.begin() + count, held.end(), held.begin());
  keep_first(r, std::ssize(held) - count);
  keep_settled(r, scratch);
  drop_above_threshold(r);
}

void RowStates::expect(std::int64_t r, std::int64_t place, const float* asked, std::int64_t apart, Scratch& scratch) {
  if (rows_[static_cast<std::size_t>(r)].beyond) return;
  const Sketch& sketch = spec_.sketch;
  const std::int64_t count = std::min(std::max(kAround, 2 * kExpected * wanted_), points_.places());
  const std::int64_t begin = std::clamp<std::int64_t>(place - count / 2, 0, points_.places() - count);
  const std::int64_t rank = std::min(kExpected * wanted_, count);
  std::vector<float>& squares = scratch.apart;
  squares.assign(static_cast<std::size_t>(count), 0.0f);
  for (std::int64_t c = 0; c < sketch.count; ++c) {
    const float own = asked[c * apart];
    const float* column = sketch.columns + c * sketch.stride + begin;
    for (std::int64_t j = 0; j < count; ++j)
      squares[static_cast<std::size_t>(j)] += (own - column[j]) * (own - column[j]);
  }
  scratch.keys.resize(squares.size());
  std::transform(squares.begin(), squares.end(), scratch.keys.begin(), [](float square) { return float_key(square); });
  const std::int32_t last = lists_.bound(scratch.keys.data(), count, rank, rank / 8);
  scratch.ranked.clear();
  scratch.ids.clear();
  for (std::int64_t j = 0; j < count; ++j) {
    if (scratch.keys[static_cast<std::size_t>(j)] <= last) scratch.ids.push_back(begin + j);
  }
  rank_exactly(r, scratch);
  if (std::ssize(scratch.ranked) < spec_.k) return;
  const auto kth = scratch.ranked.begin() + (spec_.k - 1);
  std::nth_element(scratch.ranked.begin(), kth, scratch.ranked.end());
  lower_threshold(r, bounds_.key(kth->key));
}

void RowStates::drop_above_threshold(std::int64_t r) {
  const float threshold = thresholds_[static_cast<std::size_t>(r)];
  const std::span<Survivor> held = survivors(r);
  std::size_t kept = 0;  // without branches, since half of them would be mispredicted
  for (const Survivor& survivor : held) {
    held[kept] = survivor;
    kept += survivor.lower <= threshold;
  }
  keep_first(r, static_cast<std::int64_t>(kept));
}

void RowStates::end_sample(Scratch& scratch) {
  for (std::int64_t r = 0; r < count_; ++r) {
    Row& row = rows_[static_cast<std::size_t>(r)];
    if (row.retries || row.beyond) continue;
    condense(r, spec_.sample_rank, scratch);
    row.sampled = thresholds_[static_cast<std::size_t>(r)];
    row.was_sampled = row.sampled < kNoThreshold;
  }
}

void RowStates::lower_thresholds(Scratch& scratch) {
  for (std::int64_t r = 0; r < count_; ++r) {
    const Row& row = rows_[static_cast<std::size_t>(r)];
    if (!row.retries && !row.beyond) condense(r, wanted_, scratch);
  }
}

void RowStates::take_thresholds(const RowStates& other) {
  for (std::int64_t r = 0; r < count_; ++r) {
    const auto at = static_cast<std::size_t>(r);
    set_threshold(r, std::min(thresholds_[at], other.thresholds_[at]));
  }
}

void RowStates::absorb(RowStates& other, Scratch& scratch) {
  for (std::int64_t r = 0; r < count_; ++r) {
    const auto at = static_cast<std::size_t>(r);
    Row &row = rows_[at], &more = other.rows_[at];
    row.retries |= more.retries;
    set_threshold(r, std::min(thresholds_[at], other.thresholds_[at]));
    scratch.ranked.assign(row.settled.begin(), row.settled.end());
    scratch.ranked.insert(scratch.ranked.end(), more.settled.begin(), more.settled.end());
    keep_smallest(scratch.ranked, spec_.k);
    row.settled.assign(scratch.ranked.begin(), scratch.ranked.end());
    for (const Survivor& survivor : other.survivors(r)) {
      if (survivor.lower <= thresholds_[at]) keep(r, survivor, false, scratch);
    }
    other.keep_first(r, 0);
    more.settled.clear();
  }
}

void RowStates::rank_exactly(std::int64_t r, Scratch& scratch) {
  const std::vector<std::int64_t>& ids = scratch.ids;
  const ExactQuery query = exact_query(form_.metric, queries_, begin_ + r);
  scratch.values.resize(ids.size());
  exact_values_(form_.metric, query, points_, ids.data(), std::ssize(ids), scratch.values.data());
  scratch.ranked.reserve(scratch.ranked.size() + ids.size());
  const std::int64_t self = spec_.self_ids != nullptr ? spec_.self_ids[begin_ + r] : -1;
  for (std::size_t j = 0; j < ids.size(); ++j) {
    const std::int64_t point = points_.order != nullptr ? points_.order[ids[j]] : ids[j];
    if (point != self) scratch.ranked.push_back({bounds_.key(bounds_.returned(scratch.values[j])), point});
  }
}

void RowStates::refine(std::int64_t r, Scratch& scratch) {
  Row& row = rows_[static_cast<std::size_t>(r)];
  scratch.ranked.assign(row.settled.begin(), row.settled.end());
  row.settled.clear();
  scratch.ids.clear();
  for (const Survivor& survivor : survivors(r)) scratch.ids.push_back(survivor.id);
  keep_first(r, 0);
  rank_exactly(r, scratch);
}

void RowStates::settle(std::int64_t r, Scratch& scratch) {
  refine(r, scratch);
  keep_settled(r, scratch);
}

void RowStates::keep_settled(std::int64_t r, Scratch& scratch) {
  const auto at = static_cast<std::size_t>(r);
  Row& row = rows_[at];
  keep_smallest(scratch.ranked, spec_.k);
  row.settled.assign(scratch.ranked.begin(), scratch.ranked.end());
  if (std::ssize(row.settled) < spec_.k) return;
  lower_threshold(r, bounds_.key(std::max_element(row.settled.begin(), row.settled.end())->key));
}

void RowStates::search_exactly(std::int64_t r, std::int64_t begin, std::int64_t end, Scratch& scratch) {
  constexpr std::int64_t batch = 4096;
  std::vector<Ranked>& settled = rows_[static_cast<std::size_t>(r)].settled;
  scratch.ranked.assign(settled.begin(), settled.end());
  for (std::int64_t first = begin; first < end; first += batch) {
    scratch.ids.clear();
    for (std::int64_t id = first; id < std::min(first + batch, end); ++id) scratch.ids.push_back(id);
    rank_exactly(r, scratch);
    keep_smallest(scratch.ranked, spec_.k);
  }
  settled.assign(scratch.ranked.begin(), scratch.ranked.end());
}

bool RowStates::sample_was_enough(const Row& row, const std::vector<Ranked>& ranked) const {
  if (std::ssize(ranked) < spec_.k) return false;
  return bounds_.threshold_from_value(bounds_.key(ranked.back().key), row.shift) <= row.sampled;
}

template <class Value, class Index>
std::int64_t RowStates::finish(std::int64_t first, std::int64_t last, Value* distances, Index* indices,
                               std::uint8_t* status, Scratch& scratch) {
  std::int64_t refined = 0;
  for (std::int64_t r = first; r < last; ++r) {
    Row& row = rows_[static_cast<std::size_t>(r)];
    RowStatus& end = reinterpret_cast<RowStatus*>(status)[r - first];
    end = row.retries ? RowStatus::retry : RowStatus::done;
    if (row.retries) continue;
    condense(r, wanted_, scratch);
    // Survivors are resolved in ascending order of lower bounds: once a bound exceeds the k-th value, no further exact
    // values are needed.
    const std::int64_t at_once = std::max(kResolved, spec_.k / 2);
    while (true) {
      const std::int64_t held = std::ssize(survivors(r)), missing = wanted_ - std::ssize(row.settled);
      // For few survivors, computing all values is faster than finding the lowest bounds. Fewer values than missing
      // neighbours lower no threshold.
      if (held <= std::max(at_once, missing + spec_.k / 8)) break;
      resolve_lowest(r, std::max(at_once, missing), scratch);
    }
    refined += row.resolved + std::ssize(survivors(r));
    refine(r, scratch);
    std::vector<Ranked>& ranked = scratch.ranked;
    sort_ranked(ranked);
    if (std::ssize(ranked) > spec_.k) ranked.resize(static_cast<std::size_t>(spec_.k));
    if (row.was_sampled && !sample_was_enough(row, ranked)) {
      end = RowStatus::resample;
      continue;
    }
    if (std::ssize(ranked) < spec_.k && !row.known) {
      throw std::logic_error("a row lost neighbours: its bound does not hold");
    }
    Value* out_distances = distances + (r - first) * spec_.k;
    Index* out_indices = indices + (r - first) * spec_.k;
    const std::int64_t found = std::ssize(ranked);
    std::fill(out_distances + found, out_distances + spec_.k,
              static_cast<Value>(bounds_.key(std::numeric_limits<double>::infinity())));
    std::fill(out_indices + found, out_indices + spec_.k, Index{-1});
    for (const Ranked& item : ranked) {
      *out_distances++ = static_cast<Value>(bounds_.key(item.key)) + Value{0};  // no negative zero
      *out_indices++ = static_cast<Index>(item.id);
    }
  }
  return refined;
}

template std::int64_t RowStates::finish(std::int64_t, std::int64_t, float*, std::int32_t*, std::uint8_t*, Scratch&);
template std::int64_t RowStates::finish(std::int64_t, std::int64_t, float*, std::int64_t*, std::uint8_t*, Scratch&);
template std::int64_t RowStates::finish(std::int64_t, std::int64_t, double*, std::int32_t*, std::uint8_t*, Scratch&);
template std::int64_t RowStates::finish(std::int64_t, std::int64_t, double*, std::int64_t*, std::uint8_t*, Scratch&);

}  // namespace tonari
