// Which points each query may find: those of its row of a mask, of its own or of other groups, and not excluded for it.
// If queries are numbered as points, those whose number is near the query's may be left out: one comparison.
//
// A point that may belong to an answer is looked up by its number. Many points are looked up together, so that memory
// loads several of them at once. Excluded points are looked up by a binary search. For a query of
// many points they are first entered into a small table of bits: a bit is set if the hash of an excluded point falls on
// it, and only a point whose bit is set is searched for.
#pragma once

#include <cstdint>
#include <vector>

namespace tonari {

struct AllowedPairs {
  std::int64_t m = 0, n = 0;                   // queries and points to which the arrays refer
  const std::uint8_t* mask = nullptr;          // rows of n bytes, or of ceil(n / 8) if it is packed; null: all
  std::int64_t mask_stride = 0;                // from the row of one query to that of the next; 0 if all have the same
  bool packed = false;                         // bit j % 8 of byte j // 8, counted from the lowest, is point j
  const std::int64_t* query_groups = nullptr;  // (m,); null: all
  const std::int64_t* point_groups = nullptr;  // (n,)
  bool same = true;                            // only points of the query's own group; or only those of other groups
  const std::int64_t* excluded = nullptr;      // pairs as query * n + point, ascending and distinct; null: none
  const std::int64_t* begins = nullptr;        // (m + 1,): the pairs of query i are excluded[begins[i]], ...
  std::int64_t window = -1;                    // queries are numbered as points: |query - point| is larger; -1: any
  const std::int64_t* rows = nullptr;          // the number of each query of a search; null: its own
  const std::int64_t* ids = nullptr;           // the number of each point of a search; null: its own
};

// What one query may find.
class AllowedRow {
 public:
  AllowedRow() = default;
  AllowedRow(const AllowedRow&) = delete;
  AllowedRow& operator=(const AllowedRow&) = delete;
  AllowedRow(AllowedRow&&) noexcept = default;
  AllowedRow& operator=(AllowedRow&&) noexcept = default;

  void open(const AllowedPairs& pairs, std::int64_t query);
  bool is_excluded(std::int64_t point);
  // How many of some points the query may find.
  template <class Id>
  std::int64_t count(const Id* points, std::int64_t number);

  const std::uint8_t* mask = nullptr;
  bool packed = false, same = true, excludes = false;
  std::int64_t group = 0;
  // The query may not find points from `near` on, `span` of them; without a window there are none.
  std::int64_t near = 0;
  std::uint64_t span = 0;
  const std::int64_t *point_groups = nullptr, *ids = nullptr;
  const std::uint64_t* table = nullptr;  // bits of the excluded points; null while few points have been looked up
  int shift = 0;

 private:
  void make_table();

  std::int64_t first_ = 0, searches_ = 0;  // query * n, and how many more points are searched for without a table
  const std::int64_t *excluded_ = nullptr, *excluded_end_ = nullptr;
  std::vector<std::uint64_t> bits_;
};

// Internal linkage: each instruction set compiles its own copy.
namespace {

inline std::uint64_t bit_of_excluded(std::int64_t point, int shift) {
  return (static_cast<std::uint64_t>(point) * 0x9E3779B97F4A7C15u) >> shift;
}

inline bool allows(AllowedRow& row, std::int64_t point) {
  if (row.ids != nullptr) point = row.ids[point];
  bool allowed = static_cast<std::uint64_t>(point - row.near) >= row.span;
  if (row.mask != nullptr) {
    const int byte = row.mask[row.packed ? point >> 3 : point];
    allowed &= (row.packed ? byte >> (point & 7) & 1 : byte) != 0;
  }
  if (row.point_groups != nullptr) allowed &= (row.point_groups[point] == row.group) == row.same;
  if (!row.excludes) return allowed;
  if (row.table != nullptr) {
    const std::uint64_t bit = bit_of_excluded(point, row.shift);
    if ((row.table[bit >> 6] >> (bit & 63) & 1) == 0) return allowed;
  }
  return allowed && !row.is_excluded(point);
}

}  // namespace
}  // namespace tonari
