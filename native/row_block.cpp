#include "row_block.hpp"

#include <algorithm>
#include <limits>

namespace tonari {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kFirstRoom = 48;  // survivors beyond k before the first condensing

// A value no smaller than the k-th smallest and close above it, which is all that a threshold needs: values are counted
// in bins between the least and the largest, and the largest of the k-th one's bin and below is taken.
float at_least_kth(std::vector<float>& values, std::int64_t k) {
  constexpr int bins = 256;
  constexpr std::size_t few = 64;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const float low = *least, scale = (bins - 1) / (*most - low);
  if (values.size() >= few && scale > 0 && scale < kInfinity) {
    std::int32_t counts[bins] = {};
    const auto bin = [low, scale](float value) { return static_cast<int>((value - low) * scale); };
    for (float value : values) ++counts[bin(value)];
    std::int64_t below = 0;
    int last = 0;
    while (below + counts[last] < k) below += counts[last++];
    if (counts[last] <= k / 8 + 8) {
      float kth = low;
      for (float value : values) kth = bin(value) <= last && value > kth ? value : kth;
      return kth;
    }
  }
  std::nth_element(values.begin(), values.begin() + (k - 1), values.end());
  return values[static_cast<std::size_t>(k - 1)];
}

}  // namespace

RowBlock::RowBlock(const Kernel& kernel, const Form& form, const RowsView& queries, const RowsView& points,
                   const SearchSpec& spec, Isa isa)
    : kernel_(kernel),
      queries_(queries),
      points_(points),
      form_(form),
      spec_(spec),
      bounds_(form, spec.double_output),
      exact_values_(exact_values(isa)) {}

void RowBlock::open(std::int64_t begin, std::int64_t end) {
  begin_ = begin, count_ = end - begin;
  packed_ = PackedQueries(kernel_, form_, queries_, begin, end);
  if (std::ssize(rows_) < count_) rows_.resize(static_cast<std::size_t>(count_));
  const std::int64_t wanted = spec_.k + (spec_.self_ids != nullptr ? 1 : 0);
  for (std::int64_t r = 0; r < count_; ++r) {
    Row& row = rows_[static_cast<std::size_t>(r)];
    row.wanted = wanted;
    row.was_sampled = row.climbs = false;
    row.survivors.clear();
    row.settled.clear();
    row.survivors.reserve(static_cast<std::size_t>(2 * wanted + kFirstRoom));
  }
}

void RowBlock::screen(const PackedPoints& points, std::int64_t group_begin, std::int64_t group_end,
                      std::int64_t stride, bool take_stride) {
  base_ = points.base();
  sampling_ = stride != 0 && take_stride;
  kernel_.screen({.points = points.view(),
                  .queries = packed_.view(),
                  .group_begin = group_begin,
                  .group_end = group_end,
                  .stride = stride,
                  .take_stride = take_stride,
                  .depth = packed_depth(kernel_, form_.d),
                  .keep = keep,
                  .context = this});
  if (sampling_) return;  // rows beyond the screen see every point once, with the second pass
  const std::int64_t size = kernel_.layout.point_group;
  for (std::int64_t row = 0; row < count_; ++row) {
    if (!packed_.beyond[static_cast<std::size_t>(row)]) continue;
    search_exactly(row, points.base() + group_begin * size,
                   points.base() + std::min(group_end * size, points.count()));
  }
}

void RowBlock::keep(void* self, std::int64_t row, float lower, float upper, std::int64_t point) {
  RowBlock& block = *static_cast<RowBlock*>(self);
  std::vector<Survivor>& survivors = block.rows_[static_cast<std::size_t>(row)].survivors;
  survivors.push_back({lower, upper, block.base_ + point});
  if (survivors.size() == survivors.capacity()) block.make_room(row);
}

void RowBlock::make_room(std::int64_t r) {
  Row& row = rows_[static_cast<std::size_t>(r)];
  condense(r, sampling_ ? spec_.sample_rank : row.wanted);
  const auto held = static_cast<std::int64_t>(row.survivors.size());
  const auto room = static_cast<std::int64_t>(row.survivors.capacity());
  if (held * 4 <= room * 3) return;
  if (room < spec_.capacity) {
    row.survivors.reserve(static_cast<std::size_t>(room * 2));
  } else if (spec_.may_climb) {
    row.climbs = true;
    row.survivors.clear();
    packed_.threshold[static_cast<std::size_t>(r)] = -kInfinity;
  } else {
    settle(r);
  }
}

float RowBlock::condense(std::int64_t r, std::int64_t rank) {
  const auto at = static_cast<std::size_t>(r);
  std::vector<Survivor>& survivors = rows_[at].survivors;
  if (static_cast<std::int64_t>(survivors.size()) < rank) return kInfinity;
  uppers_.clear();
  for (const Survivor& survivor : survivors) uppers_.push_back(survivor.upper);
  const float kth = at_least_kth(uppers_, rank);
  const float bound = bounds_.threshold_from_score(static_cast<double>(kth), packed_.shift[at]);
  float& threshold = packed_.threshold[at];
  threshold = std::min(threshold, bound);
  std::size_t kept = 0;  // without branches: half of them would be guessed wrong
  for (const Survivor& survivor : survivors) {
    survivors[kept] = survivor;
    kept += survivor.lower <= threshold;
  }
  survivors.resize(kept);
  return bound;
}

void RowBlock::end_sample() {
  for (std::int64_t r = 0; r < count_; ++r) {
    Row& row = rows_[static_cast<std::size_t>(r)];
    if (row.climbs || packed_.beyond[static_cast<std::size_t>(r)]) continue;
    const float bound = condense(r, spec_.sample_rank);
    if (bound == kInfinity) continue;
    row.was_sampled = true;
    row.sampled = packed_.threshold[static_cast<std::size_t>(r)];
  }
}

void RowBlock::absorb(RowBlock& other) {
  for (std::size_t r = 0; r < static_cast<std::size_t>(count_); ++r) {
    Row &row = rows_[r], &more = other.rows_[r];
    row.climbs |= more.climbs;
    if (more.was_sampled) {
      row.sampled = row.was_sampled ? std::min(row.sampled, more.sampled) : more.sampled;
      row.was_sampled = true;
    }
    row.survivors.insert(row.survivors.end(), more.survivors.begin(), more.survivors.end());
    row.settled.insert(row.settled.end(), more.settled.begin(), more.settled.end());
    packed_.threshold[r] = std::min(packed_.threshold[r], other.packed_.threshold[r]);
    more.survivors.clear();
    more.settled.clear();
  }
}

void RowBlock::rank_exactly(std::int64_t r, std::span<const std::int64_t> ids) {
  Row& row = rows_[static_cast<std::size_t>(r)];
  const ExactQuery query = exact_query(form_.metric, queries_, begin_ + r);
  values_.resize(ids.size());
  exact_values_(form_.metric, query, points_, ids.data(), static_cast<std::int64_t>(ids.size()), values_.data());
  row.settled.reserve(row.settled.size() + ids.size());
  const std::int64_t self = spec_.self_ids != nullptr ? spec_.self_ids[begin_ + r] : -1;
  for (std::size_t j = 0; j < ids.size(); ++j) {
    if (ids[j] != self) row.settled.push_back({bounds_.key(bounds_.returned(values_[j])), ids[j]});
  }
}

void RowBlock::refine(std::int64_t r) {
  Row& row = rows_[static_cast<std::size_t>(r)];
  ids_.clear();
  for (const Survivor& survivor : row.survivors) ids_.push_back(survivor.id);
  row.survivors.clear();
  rank_exactly(r, ids_);
}

void RowBlock::settle(std::int64_t r) {
  const auto at = static_cast<std::size_t>(r);
  Row& row = rows_[at];
  refine(r);
  keep_smallest(row.settled, spec_.k);
  if (std::ssize(row.settled) < spec_.k) return;
  const double worst = std::max_element(row.settled.begin(), row.settled.end())->key;
  const float bound = bounds_.threshold_from_value(bounds_.key(worst), packed_.shift[at]);
  packed_.threshold[at] = std::min(packed_.threshold[at], bound);
}

void RowBlock::search_exactly(std::int64_t r, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t batch = 4096;
  for (std::int64_t first = begin; first < end; first += batch) {
    ids_.clear();
    for (std::int64_t id = first; id < std::min(first + batch, end); ++id) ids_.push_back(id);
    rank_exactly(r, ids_);
    keep_smallest(rows_[static_cast<std::size_t>(r)].settled, spec_.k);
  }
}

bool RowBlock::sample_was_enough(const Row& row, std::int64_t r) const {
  if (std::ssize(row.settled) < spec_.k) return false;
  const double worst = row.settled.back().key;
  return bounds_.threshold_from_value(bounds_.key(worst), packed_.shift[static_cast<std::size_t>(r)]) <= row.sampled;
}

template <class Value, class Index>
std::int64_t RowBlock::finish(Value* distances, Index* indices, std::uint8_t* status) {
  std::int64_t refined = 0;
  for (std::int64_t r = 0; r < count_; ++r) {
    Row& row = rows_[static_cast<std::size_t>(r)];
    status[r] = static_cast<std::uint8_t>(row.climbs ? RowStatus::climb : RowStatus::done);
    if (row.climbs) continue;
    condense(r, row.wanted);
    refined += std::ssize(row.survivors);
    refine(r);
    sort_ranked(row.settled);
    if (std::ssize(row.settled) > spec_.k) row.settled.resize(static_cast<std::size_t>(spec_.k));
    if (row.was_sampled && !sample_was_enough(row, r)) {
      status[r] = static_cast<std::uint8_t>(RowStatus::resample);
      continue;
    }
    for (std::size_t j = 0; j < row.settled.size(); ++j) {
      const std::int64_t out = r * spec_.k + static_cast<std::int64_t>(j);
      distances[out] = static_cast<Value>(bounds_.key(row.settled[j].key));
      indices[out] = static_cast<Index>(row.settled[j].id);
    }
  }
  return refined;
}

template std::int64_t RowBlock::finish(float*, std::int32_t*, std::uint8_t*);
template std::int64_t RowBlock::finish(float*, std::int64_t*, std::uint8_t*);
template std::int64_t RowBlock::finish(double*, std::int32_t*, std::uint8_t*);
template std::int64_t RowBlock::finish(double*, std::int64_t*, std::uint8_t*);

}  // namespace tonari
