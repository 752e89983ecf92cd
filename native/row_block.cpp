#include "row_block.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace tonari {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kFirstRoom = 48;  // survivors beyond k before the first condensing

}  // namespace

RowBlock::RowBlock(const Kernel& kernel, const Form& form, const RowsView& queries, std::int64_t begin,
                   std::int64_t end, const RowsView& points, const SearchSpec& spec, Isa isa)
    : kernel_(kernel),
      queries_(queries),
      points_(points),
      form_(form),
      spec_(spec),
      bounds_(form, spec.double_output),
      exact_values_(exact_values(isa)),
      begin_(begin),
      count_(end - begin),
      packed_(kernel, form, queries, begin, end),
      rows_(static_cast<std::size_t>(end - begin)) {
  for (Row& row : rows_) {
    row.wanted = spec.k + (spec.self_ids != nullptr ? 1 : 0);
    row.survivors.reserve(static_cast<std::size_t>(2 * row.wanted + kFirstRoom));
  }
}

void RowBlock::screen(const PackedPoints& points, std::int64_t group_begin, std::int64_t group_end,
                      std::int64_t stride, bool take_stride) {
  screening_ = points.view();
  kernel_.screen({.points = screening_,
                  .queries = packed_.view(),
                  .group_begin = group_begin,
                  .group_end = group_end,
                  .stride = stride,
                  .take_stride = take_stride,
                  .depth = packed_depth(kernel_, form_.d),
                  .collect = collect,
                  .context = this});
  if (stride != 0 && take_stride) return;  // rows beyond the screen see every point once, with the second pass
  const std::int64_t size = kernel_.layout.point_group;
  for (std::int64_t row = 0; row < count_; ++row) {
    if (!packed_.beyond[static_cast<std::size_t>(row)]) continue;
    search_exactly(row, points.base() + group_begin * size,
                   points.base() + std::min(group_end * size, points.count()));
  }
}

void RowBlock::collect(void* self, int tile, std::int64_t group, const float* scores, std::uint64_t lanes) {
  RowBlock& block = *static_cast<RowBlock*>(self);
  const Layout& layout = block.kernel_.layout;
  const PointsView& points = block.screening_;
  const std::int64_t first = group * layout.point_group;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::int64_t row = static_cast<std::int64_t>(tile) * layout.query_tile + lane;
    const auto r = static_cast<std::size_t>(row);
    const float norm = block.packed_.norm[r], rest = block.packed_.rest[r];
    for (int p = 0; p < layout.point_group; ++p) {
      const std::int64_t at = first + p;
      const float score = scores[p * layout.query_tile + lane];
      const float bound = norm * points.error_query[at] + rest * points.error_rest[at];
      if (score - bound <= block.packed_.threshold[r] && points.low[at] < kInfinity) {
        block.push(row, {score - bound, score + bound + 2 * points.error_own[at], points.base + at});
      }
    }
  }
}

void RowBlock::push(std::int64_t row, Survivor survivor) {
  std::vector<Survivor>& survivors = rows_[static_cast<std::size_t>(row)].survivors;
  survivors.push_back(survivor);
  if (survivors.size() == survivors.capacity()) make_room(row);
}

void RowBlock::make_room(std::int64_t r) {
  Row& row = rows_[static_cast<std::size_t>(r)];
  condense(r, row.wanted);
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
  const auto kth = uppers_.begin() + (rank - 1);
  std::nth_element(uppers_.begin(), kth, uppers_.end());
  const float bound = bounds_.threshold_from_score(static_cast<double>(*kth), packed_.shift[at]);
  float& threshold = packed_.threshold[at];
  threshold = std::min(threshold, bound);
  const float limit = threshold;
  std::erase_if(survivors, [limit](const Survivor& survivor) { return survivor.lower > limit; });
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
  for (std::size_t r = 0; r < rows_.size(); ++r) {
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
  const std::int64_t self = spec_.self_ids != nullptr ? spec_.self_ids[begin_ + r] : -1;
  for (std::size_t j = 0; j < ids.size(); ++j) {
    if (ids[j] != self) row.settled.push_back({bounds_.key(bounds_.returned(values_[j])), ids[j]});
  }
  const auto k = static_cast<std::ptrdiff_t>(spec_.k);
  if (std::ssize(row.settled) > k) {
    std::nth_element(row.settled.begin(), row.settled.begin() + (k - 1), row.settled.end());
    row.settled.resize(static_cast<std::size_t>(k));
  }
}

void RowBlock::settle(std::int64_t r) {
  const auto at = static_cast<std::size_t>(r);
  Row& row = rows_[at];
  ids_.clear();
  for (const Survivor& survivor : row.survivors) ids_.push_back(survivor.id);
  row.survivors.clear();
  rank_exactly(r, ids_);
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
    settle(r);
    std::sort(row.settled.begin(), row.settled.end());
    if (row.was_sampled && !sample_was_enough(row, r)) {
      status[r] = static_cast<std::uint8_t>(RowStatus::resample);
      continue;
    }
    for (std::size_t j = 0; j < row.settled.size(); ++j) {
      const std::int64_t out = r * spec_.k + static_cast<std::int64_t>(j);
      distances[out] = static_cast<Value>(bounds_.key(row.settled[j].key));
      indices[out] = static_cast<Index>(row.settled[j].id);
    }
    row.survivors = {};
    row.settled = {};
  }
  return refined;
}

template std::int64_t RowBlock::finish(float*, std::int32_t*, std::uint8_t*);
template std::int64_t RowBlock::finish(float*, std::int64_t*, std::uint8_t*);
template std::int64_t RowBlock::finish(double*, std::int32_t*, std::uint8_t*);
template std::int64_t RowBlock::finish(double*, std::int64_t*, std::uint8_t*);

}  // namespace tonari
