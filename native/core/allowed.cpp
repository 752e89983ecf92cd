#include "core/allowed.hpp"

#include <algorithm>
#include <bit>

namespace tonari {

namespace {
constexpr std::uint64_t kBitsPerPair = 32;    // of the table, or up to twice that: one in 32 points is searched in vain
constexpr std::int64_t kPairsPerSearch = 32;  // one search takes as long as 32 insertions into the table
}  // namespace

void AllowedRow::open(const AllowedPairs& pairs, std::int64_t query) {
  const std::int64_t row = pairs.rows != nullptr ? pairs.rows[query] : query;
  packed = pairs.packed, same = pairs.same;
  mask = pairs.mask != nullptr ? pairs.mask + row * pairs.mask_stride : nullptr;
  point_groups = pairs.point_groups;
  group = pairs.query_groups != nullptr ? pairs.query_groups[row] : 0;
  near = row - pairs.window;
  span = static_cast<std::uint64_t>(2 * pairs.window + 1) * (pairs.window >= 0);
  ids = pairs.ids;
  table = nullptr;
  excludes = pairs.excluded != nullptr && pairs.begins[row] < pairs.begins[row + 1];
  if (!excludes) return;
  first_ = row * pairs.n;
  excluded_ = pairs.excluded + pairs.begins[row];
  excluded_end_ = pairs.excluded + pairs.begins[row + 1];
  searches_ = (excluded_end_ - excluded_) / kPairsPerSearch;
}

void AllowedRow::make_table() {
  const std::uint64_t wanted = kBitsPerPair * static_cast<std::uint64_t>(excluded_end_ - excluded_);
  const std::uint64_t size = std::max(std::uint64_t{64}, std::bit_ceil(wanted));
  shift = 64 - std::countr_zero(size);
  bits_.assign(size / 64, 0);
  for (const std::int64_t* pair = excluded_; pair != excluded_end_; ++pair) {
    const std::uint64_t bit = bit_of_excluded(*pair - first_, shift);
    bits_[bit >> 6] |= std::uint64_t{1} << (bit & 63);
  }
  table = bits_.data();
}

template <class Id>
std::int64_t AllowedRow::count(const Id* points, std::int64_t number) {
  std::int64_t found = 0;
  const bool by_one_rule = ids == nullptr && span == 0 && (mask != nullptr) + (point_groups != nullptr) + excludes == 1;
  if (by_one_rule && mask != nullptr && !packed) {
    for (std::int64_t i = 0; i < number; ++i) found += mask[points[i]] != 0;
  } else if (by_one_rule && mask != nullptr) {
    for (std::int64_t i = 0; i < number; ++i) found += mask[points[i] >> 3] >> (points[i] & 7) & 1;
  } else if (by_one_rule && point_groups != nullptr) {
    for (std::int64_t i = 0; i < number; ++i) found += (point_groups[points[i]] == group) == same;
  } else if (by_one_rule && excludes && (table != nullptr || number > searches_)) {
    if (table == nullptr) make_table();
    const std::uint64_t* const in = table;
    const int by = shift;
    found = number;
    for (std::int64_t i = 0; i < number; ++i) {
      const std::uint64_t bit = bit_of_excluded(points[i], by);
      if ((in[bit >> 6] >> (bit & 63) & 1) != 0) found -= is_excluded(points[i]);
    }
  } else {
    for (std::int64_t i = 0; i < number; ++i) found += allows(*this, points[i]);
  }
  return found;
}

template std::int64_t AllowedRow::count(const std::int32_t*, std::int64_t);
template std::int64_t AllowedRow::count(const std::int64_t*, std::int64_t);

bool AllowedRow::is_excluded(std::int64_t point) {
  if (table == nullptr && searches_-- == 0) make_table();
  return std::binary_search(excluded_, excluded_end_, first_ + point);
}

}  // namespace tonari
