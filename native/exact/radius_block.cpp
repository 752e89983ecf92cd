#include "exact/radius_block.hpp"

#include <algorithm>
#include <cmath>

namespace tonari {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNoThreshold = std::numeric_limits<float>::max();  // finite, so that padding at infinity never passes
constexpr std::size_t kPadding = 64;                               // the widest tile of queries
constexpr std::int64_t kBatch = 8192;                              // number of points that are evaluated together
constexpr std::int64_t kInsides = 512;  // points within the radius whose rules are looked up at a time

}  // namespace

RadiusBlock::RadiusBlock(const Kernel& kernel, const Form& form, const Form* look, const RowsView& queries,
                         const RowsView& points, const RadiusSpec& spec, Isa isa)
    : kernel_(kernel),
      form_(form),
      queries_(queries),
      points_(points),
      spec_(spec),
      bounds_(form, spec.double_output),
      exact_values_(exact_values(isa)),
      look_(kernel, look) {}

void RadiusBlock::open(std::int64_t begin, std::int64_t end) {
  packed_ = look_.open(form_, queries_, begin, end);
  begin_ = begin, count_ = end - begin;
  found_ = vain_ = 0;
  full_ = false;
  inside_.clear();
  pending_.clear();
  std::int64_t held = 0;
  for (const Row& row : rows_) held += static_cast<std::int64_t>(row.listed.capacity());
  if (held > spec_.room) rows_.clear();  // frees the memory of earlier blocks' lists
  if (std::ssize(rows_) < count_) rows_.resize(static_cast<std::size_t>(count_));
  thresholds_.assign(static_cast<std::size_t>(count_) + kPadding, -kInfinity);
  for (std::int64_t r = 0; r < count_; ++r) start(r);
}

void RadiusBlock::start(std::int64_t r) {
  const auto at = static_cast<std::size_t>(r);
  Row& row = rows_[at];
  const double limit = spec_.limits[begin_ + r];
  const bool descending = is_descending(form_.metric);
  row.key = bounds_.key(limit);
  row.count = 0;
  row.listed.clear();
  if (spec_.allowed != nullptr) row.allowed.open(*spec_.allowed, begin_ + r);
  // Distances are not negative, and angular ones at most 2.
  row.none = !descending && limit < 0;
  row.every = row.key == std::numeric_limits<double>::infinity() || (is_angular(form_.metric) && limit >= 2);
  row.within = -kInfinity;
  const bool is_counted = row.every && !spec_.lists;
  if (row.none || is_counted || packed_.beyond[at]) return;
  const double shift = packed_.shift[at];
  thresholds_[at] = row.every ? kNoThreshold : std::min(kNoThreshold, bounds_.threshold_from_value(limit, shift));
  // A contracted score is no upper bound, so it cannot show that a point is within the radius.
  if (!spec_.lists && !form_.contracts()) row.within = bounds_.score_within(limit, shift);
}

void RadiusBlock::screen(const PackedPoints& points, bool looks, std::int64_t group_begin, std::int64_t group_end) {
  if (full_) return;
  const std::int64_t size = kernel_.layout.point_group, base = points.base();
  if (spec_.later && points_.order == nullptr) {
    group_begin = std::clamp((spec_.self_ids[begin_] + 1 - base) / size, group_begin, group_end);
  }
  struct Keeper {
    RadiusBlock& block;
    std::int64_t base;
  } keeper{*this, base};
  QueriesView queries = packed_.view();
  queries.threshold = thresholds_.data();
  Task task{.points = points.view(),
            .queries = queries,
            .reverse = {},
            .group_begin = group_begin,
            .group_end = group_end,
            .stride = 0,
            .take_stride = false,
            .depth = packed_depth(kernel_, form_.columns()),
            .keep =
                [](void* context, std::int64_t row, float, float upper, std::int64_t point) {
                  Keeper& self = *static_cast<Keeper*>(context);
                  self.block.take(row, upper, self.base + point);
                },
            .keep_reverse = nullptr,
            .context = &keeper};
  look_.mark(looks ? points.contracted() : nullptr, task);
  kernel_.screen(task);
  const std::int64_t begin = base + group_begin * size, end = base + std::min(group_end * size, points.count());
  for (std::int64_t r = 0; r < count_ && begin < end; ++r) {
    const Row& row = rows_[static_cast<std::size_t>(r)];
    if (row.none) continue;
    if (row.every && !spec_.lists) count_all(r, begin, end);
    else if (packed_.beyond[static_cast<std::size_t>(r)]) search_exactly(r, begin, end);
  }
}

bool RadiusBlock::is_left_out(std::int64_t r, std::int64_t id) {
  if (spec_.allowed != nullptr) return !allows(rows_[static_cast<std::size_t>(r)].allowed, point_at(id));
  if (spec_.self_ids == nullptr) return false;
  const std::int64_t own = spec_.self_ids[begin_ + r], found = point_at(id);
  return spec_.later ? found <= own : found == own;
}

void RadiusBlock::take(std::int64_t r, float upper, std::int64_t id) {
  if (full_) return;
  Row& row = rows_[static_cast<std::size_t>(r)];
  if (spec_.allowed != nullptr) {
    load_ahead(row.allowed, point_at(id));
    if (upper <= row.within) {
      inside_.push_back({r, id});
      if (std::ssize(inside_) == kInsides) count_inside();
      return;
    }
  } else {
    if (is_left_out(r, id)) return;
    if (upper <= row.within) {
      ++row.count;
      return;
    }
  }
  pending_.push_back({r, id});
  if (std::ssize(pending_) == kBatch) evaluate_pending();
}

void RadiusBlock::count_inside() {
  for (const Pending& item : inside_) {
    Row& row = rows_[static_cast<std::size_t>(item.row)];
    row.count += allows(row.allowed, point_at(item.id));
  }
  inside_.clear();
}

void RadiusBlock::count_all(std::int64_t r, std::int64_t begin, std::int64_t end) {
  std::int64_t& count = rows_[static_cast<std::size_t>(r)].count;
  if (spec_.self_ids == nullptr && spec_.allowed == nullptr) {
    count += end - begin;
    return;
  }
  for (std::int64_t id = begin; id < end; ++id) count += !is_left_out(r, id);
}

void RadiusBlock::search_exactly(std::int64_t r, std::int64_t begin, std::int64_t end) {
  for (std::int64_t first = begin; first < end && !full_; first += kBatch) {
    scratch_.ids.clear();
    for (std::int64_t id = first; id < std::min(first + kBatch, end); ++id) {
      if (!is_left_out(r, id)) scratch_.ids.push_back(id);
    }
    evaluate(r);
    check_room();
  }
}

void RadiusBlock::evaluate_pending() {
  // By row, each in the order of the points; the rows of one batch lie in few slices of the points.
  if (spec_.allowed != nullptr) {
    std::erase_if(pending_, [this](const Pending& item) { return is_left_out(item.row, item.id); });
  }
  starts_.assign(static_cast<std::size_t>(count_) + 1, 0);
  for (const Pending& item : pending_) ++starts_[static_cast<std::size_t>(item.row) + 1];
  for (std::size_t r = 1; r < starts_.size(); ++r) starts_[r] += starts_[r - 1];
  ids_.resize(pending_.size());
  for (const Pending& item : pending_) {
    ids_[static_cast<std::size_t>(starts_[static_cast<std::size_t>(item.row)]++)] = item.id;
  }
  pending_.clear();
  auto first = ids_.begin();
  for (std::int64_t r = 0; r < count_; ++r) {
    const auto last = ids_.begin() + starts_[static_cast<std::size_t>(r)];
    if (first == last) continue;
    scratch_.ids.assign(first, last);
    evaluate(r);
    first = last;
  }
  check_room();
}

void RadiusBlock::evaluate(std::int64_t r) {
  const std::vector<std::int64_t>& ids = scratch_.ids;
  Row& row = rows_[static_cast<std::size_t>(r)];
  const ExactQuery query = exact_query(form_.metric, queries_, begin_ + r);
  scratch_.values.resize(ids.size());
  exact_values_(form_.metric, query, points_, ids.data(), std::ssize(ids), scratch_.values.data());
  std::int64_t inside = 0;
  for (std::size_t j = 0; j < ids.size(); ++j) {
    const double key = bounds_.key(bounds_.returned(scratch_.values[j]));
    if (!(key <= row.key)) continue;
    ++inside;
    if (spec_.lists) row.listed.push_back({key, point_at(ids[j])});
  }
  row.count += inside;
  if (spec_.lists) found_ += inside;
  vain_ += std::ssize(ids) - (spec_.lists ? inside : 0);
}

void RadiusBlock::check_room() {
  if (count_ == 1 || found_ <= spec_.room) return;
  full_ = true;
  found_ = 0;
  pending_.clear();
  std::fill(thresholds_.begin(), thresholds_.end(), -kInfinity);
  std::vector<Row>(rows_.size()).swap(rows_);
}

void RadiusBlock::absorb(RadiusBlock& other) {
  other.count_inside();
  if (!other.pending_.empty()) other.evaluate_pending();
  full_ |= other.full_;
  vain_ += other.vain_;
  if (full_) return;
  for (std::int64_t r = 0; r < count_; ++r) {
    Row &row = rows_[static_cast<std::size_t>(r)], &more = other.rows_[static_cast<std::size_t>(r)];
    row.count += more.count;
    row.listed.insert(row.listed.end(), more.listed.begin(), more.listed.end());
    std::vector<Ranked>().swap(more.listed);
  }
  found_ += other.found_;
  check_room();
}

std::int64_t RadiusBlock::count(std::int64_t* counts) {
  count_inside();
  if (!pending_.empty()) evaluate_pending();
  for (std::int64_t r = 0; r < count_; ++r) counts[r] = rows_[static_cast<std::size_t>(r)].count;
  return vain_;
}

template <class Value, class Index>
void RadiusBlock::write(Value* distances, Index* indices) {
  for (std::int64_t r = 0; r < count_; ++r) {
    std::vector<Ranked>& listed = rows_[static_cast<std::size_t>(r)].listed;
    sort_ranked(listed);
    for (const Ranked& item : listed) {
      *distances++ = static_cast<Value>(bounds_.key(item.key)) + Value{0};  // no negative zero
      *indices++ = static_cast<Index>(item.id);
    }
  }
}

template void RadiusBlock::write(float*, std::int32_t*);
template void RadiusBlock::write(float*, std::int64_t*);
template void RadiusBlock::write(double*, std::int32_t*);
template void RadiusBlock::write(double*, std::int64_t*);

}  // namespace tonari
