#include "core/allowed.hpp"

#include <algorithm>
#include <bit>

namespace tonari {

namespace {
constexpr std::uint64_t kBitsPerPair = 32;   // least size of the table: for one in 32 points the list is read in vain
constexpr std::uint64_t kClearedPerBit = 8;  // the table has a bit for each point if it is at most so much larger then
constexpr std::int64_t kReads = 2;           // reading a list takes about half as long as making its table
constexpr std::uint64_t kHash = 0x9E3779B97F4A7C15u;
constexpr std::int64_t kBlock = 512;  // points that are looked up together
}  // namespace

void AllowedRow::open(const AllowedPairs& pairs, std::int64_t query) {
  const std::int64_t row = pairs.row_of(query);
  packed = pairs.packed, same = pairs.same;
  mask = pairs.mask != nullptr ? pairs.mask + row * pairs.mask_stride : nullptr;
  point_groups = pairs.point_groups;
  group = pairs.query_groups != nullptr ? pairs.query_groups[row] : 0;
  near = row - pairs.window;
  span = pairs.window < 0 ? 0 : static_cast<std::uint64_t>(2 * pairs.window + 1);
  ids = pairs.ids;
  table = nullptr;
  excludes = pairs.excluded != nullptr && pairs.begins[row] < pairs.begins[row + 1];
  if (!excludes) return;
  n_ = pairs.n;
  excluded_ = pairs.excluded + pairs.begins[row];
  excluded_end_ = pairs.excluded + pairs.begins[row + 1];
  searches_ = kReads;
}

void AllowedRow::make_table() {
  const std::uint64_t wanted = kBitsPerPair * static_cast<std::uint64_t>(excluded_end_ - excluded_);
  const std::uint64_t hashed = std::max(std::uint64_t{64}, std::bit_ceil(wanted));
  const std::uint64_t whole = (static_cast<std::uint64_t>(n_) + 63) / 64 * 64;
  const bool one_each = whole <= kClearedPerBit * hashed;
  factor = one_each ? 1 : kHash;
  shift = one_each ? 0 : 64 - std::countr_zero(hashed);
  bits_.assign((one_each ? whole : hashed) / 64, 0);
  for (const std::int64_t* pair = excluded_; pair != excluded_end_; ++pair) {
    const std::uint64_t bit = static_cast<std::uint64_t>(*pair) * factor >> shift;
    bits_[bit >> 6] |= std::uint64_t{1} << (bit & 63);
  }
  table = bits_.data();
}

// Copies the points that pass a test, in their order; `kept` may be `points`. Returns their number.
template <class Id, class Test>
std::int64_t AllowedRow::keep(const Id* points, std::int64_t number, std::int64_t* kept, const Test& test) {
  std::int64_t left = 0;
  for (std::int64_t i = 0; i < number; ++i) {
    const std::int64_t point = points[i];
    kept[left] = point;
    left += test(point) ? 1 : 0;
  }
  return left;
}

// The number of points that pass all rules, of at most kBlock points.
template <class Id>
std::int64_t AllowedRow::count_few(const Id* points, std::int64_t number, std::int64_t* kept) {
  bool copied = false;
  const auto only = [&](const auto& test) {
    number = copied ? keep(kept, number, kept, test) : keep(points, number, kept, test);
    copied = true;
  };
  if (mask != nullptr && packed) {
    only([bytes = mask](std::int64_t point) { return (bytes[point >> 3] >> (point & 7) & 1) != 0; });
  } else if (mask != nullptr) {
    only([bytes = mask](std::int64_t point) { return bytes[point] != 0; });
  }
  if (point_groups != nullptr) {
    only([groups = point_groups, mine = group, wanted = same](std::int64_t point) {
      return (groups[point] == mine) == wanted;
    });
  }
  if (span > 0) {
    only([first = near, length = span](std::int64_t point) {
      return static_cast<std::uint64_t>(point - first) >= length;
    });
  }
  if (!excludes) return number;
  if (table == nullptr && number > searches_) make_table();
  if (table != nullptr && shift == 0) {
    only([bits = table](std::int64_t point) { return !has_bit(bits, point, 1, 0); });
  } else if (table != nullptr) {
    only([&, bits = table, by = shift](std::int64_t point) {
      return !has_bit(bits, point, kHash, by) || !is_excluded(point);
    });
  } else {
    only([&](std::int64_t point) { return !is_excluded(point); });
  }
  return number;
}

template <class Id>
std::int64_t AllowedRow::count_in_mask(const Id* points, std::int64_t number) const {
  std::int64_t found = 0;
  const std::uint8_t* const bytes = mask;
  if (packed) {
    for (std::int64_t i = 0; i < number; ++i) found += bytes[points[i] >> 3] >> (points[i] & 7) & 1;
  } else {
    for (std::int64_t i = 0; i < number; ++i) found += bytes[points[i]] != 0 ? 1 : 0;
  }
  return found;
}

template <class Id>
std::int64_t AllowedRow::count(const Id* points, std::int64_t number) {
  std::int64_t found = 0;
  if (ids != nullptr) {
    for (std::int64_t i = 0; i < number; ++i) found += allows(*this, points[i]) ? 1 : 0;
    return found;
  }
  if (mask != nullptr && point_groups == nullptr && span == 0 && !excludes) return count_in_mask(points, number);
  std::int64_t kept[kBlock];
  for (; number > 0; points += kBlock, number -= kBlock) found += count_few(points, std::min(number, kBlock), kept);
  return found;
}

template std::int64_t AllowedRow::count(const std::int32_t*, std::int64_t);
template std::int64_t AllowedRow::count(const std::int64_t*, std::int64_t);

bool AllowedRow::is_excluded(std::int64_t point) {
  if (table == nullptr && searches_-- == 0) make_table();
  if (table != nullptr && shift == 0) return has_bit(table, point, factor, shift);
  return std::find(excluded_, excluded_end_, point) != excluded_end_;
}

}  // namespace tonari
