// Which points each query may find: those that its row of a mask allows, that are in its own group (or only those in
// other groups), and that are not excluded for it. If queries are numbered as points, a window may also exclude points
// whose numbers are near the query's, which takes one comparison.
//
// A point that may belong to an answer is looked up by its number. Many points are looked up together, one rule after
// another and without branches, so that memory loads several of them at once. Excluded points are listed in any order. One
// point is looked up by reading the query's list. For more points, the list is first entered into a small table of bits:
// the hash of each excluded point sets a bit, and the list is read only for a point whose bit is set. If the table has a
// bit for each point, it is not read again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tonari {

struct AllowedPairs {
  std::int64_t m = 0, n = 0;                   // queries and points to which the arrays refer
  const std::uint8_t* mask = nullptr;          // rows of n bytes, or of ceil(n / 8) if it is packed; null: all
  std::int64_t mask_stride = 0;                // from one query's row to the next; 0 if all queries have the same row
  bool packed = false;                         // bit j % 8 of byte j // 8, counted from the lowest, is point j
  const std::int64_t* query_groups = nullptr;  // (m,); null: all
  const std::int64_t* point_groups = nullptr;  // (n,)
  bool same = true;                            // find only points of the query's own group; false: only of other groups
  const std::int64_t* excluded = nullptr;      // lists of points in any order, perhaps repeated; null: none
  const std::int64_t* begins = nullptr;        // (m + 1,): the list of query i is excluded[begins[i]], ...
  std::int64_t window = -1;                    // find only points with |query - point| > window; -1: no window
  bool copies = false;  // rules may be copied in the order of a tree, in 18 bytes a point for each thread
  const std::int64_t* rows = nullptr;  // for query i of a search, its number in the rules; null: i
  const std::int64_t* ids = nullptr;   // for point j of a search, its number in the rules; null: j

  // Whether queries have rows of a mask that may be copied in the order of a tree.
  bool in_tree() const { return copies && mask != nullptr && mask_stride != 0 && ids == nullptr; }
  // Whether points have entries that may be copied in the order of a tree: groups, or one mask for all queries.
  bool has_entries() const { return copies && (point_groups != nullptr || (mask != nullptr && mask_stride == 0)); }
  bool is_empty() const { return mask == nullptr && point_groups == nullptr && excluded == nullptr && window < 0; }
  std::int64_t row_of(std::int64_t query) const { return rows != nullptr ? rows[query] : query; }
  std::span<const std::int64_t> excluded_of(std::int64_t query) const {
    const std::int64_t row = row_of(query);
    return {excluded + begins[row], static_cast<std::size_t>(begins[row + 1] - begins[row])};
  }
  // The memory that look-ups for a query read: its row of the mask if it has one, else its excluded points.
  std::span<const std::uint8_t> memory_of(std::int64_t query) const {
    const std::int64_t row = row_of(query);
    if (mask != nullptr && mask_stride != 0) return {mask + row * mask_stride, static_cast<std::size_t>(mask_stride)};
    if (excluded == nullptr) return {};
    const std::span<const std::int64_t> list = excluded_of(query);
    return {reinterpret_cast<const std::uint8_t*>(list.data()), list.size_bytes()};
  }
};

// The points that one query may find.
class AllowedRow {
 public:
  AllowedRow() = default;
  AllowedRow(const AllowedRow&) = delete;
  AllowedRow& operator=(const AllowedRow&) = delete;
  AllowedRow(AllowedRow&&) noexcept = default;
  AllowedRow& operator=(AllowedRow&&) noexcept = default;

  void open(const AllowedPairs& pairs, std::int64_t query);
  bool is_excluded(std::int64_t point);
  // Whether the points' entries of a mask are at random places in memory.
  bool reads_mask() const { return mask != nullptr && ids == nullptr; }
  // Whether the query has no other rule than its list of excluded points, which refer to points by their own numbers.
  bool only_excludes() const {
    return excludes && table == nullptr && mask == nullptr && point_groups == nullptr && span == 0 && ids == nullptr;
  }
  std::span<const std::int64_t> excluded() const { return {excluded_, excluded_end_}; }
  // Returns how many of these points the query may find.
  template <class Id>
  std::int64_t count(const Id* points, std::int64_t number);

  const std::uint8_t* mask = nullptr;
  bool packed = false, same = true, excludes = false;
  std::int64_t group = 0;
  // The query may not find `span` points from `near` on; without a window, `span` is 0.
  std::int64_t near = 0;
  std::uint64_t span = 0;
  const std::int64_t *point_groups = nullptr, *ids = nullptr;
  const std::uint64_t* table = nullptr;  // bits of the excluded points; null while few points have been looked up
  std::uint64_t factor = 1;              // a point has bit `point * factor >> shift`
  int shift = 0;

 private:
  void make_table();
  template <class Id, class Test>
  static std::int64_t keep(const Id* points, std::int64_t number, std::int64_t* kept, const Test& test);
  template <class Id>
  std::int64_t count_in_mask(const Id* points, std::int64_t number) const;
  template <class Id>
  std::int64_t count_few(const Id* points, std::int64_t number, std::int64_t* kept);

  std::int64_t n_ = 0;         // number of points
  std::int64_t searches_ = 0;  // how often the list may still be read before a table is made
  const std::int64_t *excluded_ = nullptr, *excluded_end_ = nullptr;
  std::vector<std::uint64_t> bits_;
};

// Internal linkage: each instruction set compiles its own copy.
namespace {

inline bool is_in_mask(const std::uint8_t* mask, bool packed, std::int64_t point) {
  const int byte = mask[packed ? point >> 3 : point];
  return (packed ? byte >> (point & 7) & 1 : byte) != 0;
}

inline bool has_bit(const std::uint64_t* table, std::int64_t point, std::uint64_t factor, int shift) {
  const std::uint64_t bit = static_cast<std::uint64_t>(point) * factor >> shift;
  return (table[bit >> 6] >> (bit & 63) & 1) != 0;
}

inline bool allows(AllowedRow& row, std::int64_t point) {
  if (row.ids != nullptr) point = row.ids[point];
  bool allowed = static_cast<std::uint64_t>(point - row.near) >= row.span;
  if (row.mask != nullptr) allowed &= is_in_mask(row.mask, row.packed, point);
  if (row.point_groups != nullptr) allowed &= (row.point_groups[point] == row.group) == row.same;
  if (!row.excludes) return allowed;
  if (row.table != nullptr && !has_bit(row.table, point, row.factor, row.shift)) return allowed;
  return allowed && !row.is_excluded(point);
}

// Loads the entry of a point in a query's own row of a mask.
inline void load_ahead(const AllowedRow& row, std::int64_t point) {
  if (row.mask == nullptr) return;
  if (row.ids != nullptr) point = row.ids[point];
  __builtin_prefetch(row.mask + (row.packed ? point >> 3 : point), 0, 2);
}

}  // namespace
}  // namespace tonari
