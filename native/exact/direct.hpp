// Searches so small that a screen would take longer than computing all exact values. They need no form and no packed
// points.
//
// For float32 rows and metrics of squares, estimates rule out most points, so few exact values are needed. A sum of
// squares has no cancellation, so that an estimate e of S(q - x)^2 = f, with c = estimate_roundings(d) roundings to u =
// 2^-24, has
//
//   |e - f| <= g f + a,    g = c u / (1 - c u),    a = d 2^-149
//
// where a allows for squares that underflow; differences do not underflow. Let t be the k-th smallest estimate. Then k
// points have f <= (t + a) / (1 - g). Returned values follow f up to the errors of float64, below 2^-38 of it, and their
// rounding to float32. So another point whose returned value is no larger has
// f <= (t + a) / (1 - g) (1 + 2^-21) + 2^-147, and with g <= 2^-9 an estimate of at most
//
//   t (1 + 4 c u + 2^-19) + 8 a + 2^-140.
//
// For a radius, t is its square and not an estimate: f <= t (1 + 2^-21) + 2^-147, so the same bound holds.
//
// If this bound exceeds the range of float32, or if an estimate overflows, all points remain. Points are read in
// batches, and t is computed from the points that have been read, so that few estimates are in memory; t never rises.
// The exact values of the remaining points are computed in the end.
#pragma once

#include "core/allowed.hpp"
#include "exact/refine.hpp"

namespace tonari {

struct DirectSearch {
  Metric metric;
  Isa isa;
  RowsView queries, points;
  std::int64_t k;
  const std::int64_t* self_ids;  // for every query, the point that it must not find, or -1; null: none
  // Query i is compared only with points listed[begins[i]], ..., listed[ends[i] - 1], which ascend; null: with all.
  const std::int64_t *listed = nullptr, *begins = nullptr, *ends = nullptr;
  // Whether the values of the queries, or of queries and points, have not been checked yet.
  enum class Unchecked { none, queries, all } unchecked = Unchecked::none;
};

// Writes the k nearest points of queries [begin, end) to the start of the outputs; Value is the type of returned
// distances. If a query has fewer than k, its last entries are -1 at infinity (-infinity for similarities).
// Returns false, with arbitrary outputs, if a value that is not checked may be refused (is_refused in core/rows.hpp).
// Estimates show that all values are finite; without estimates, the values are checked first.
template <class Value, class Index>
bool search_directly(const DirectSearch& search, std::int64_t begin, std::int64_t end, Value* distances,
                     Index* indices);

// Radius searches that compute the exact values of all points that estimates do not rule out.
struct DirectRadius {
  Metric metric;
  Isa isa;
  RowsView queries, points;
  const double* limits;          // for every query, the farthest returned value that is within its radius
  const std::int64_t* self_ids;  // for every query, the point that it must not find; or null
  const AllowedPairs* allowed;   // which points each query may find; null: all others
  bool later;                    // only points after the query's own
};

// Whether all of these values are so far from the ends of float32 that none has overflowed or underflowed.
template <class Value>
bool are_plain(const Value* values, std::int64_t count);

// Writes the points within the radius of every query one list after the other, ordered by (returned value, number), and
// where the lists begin and end; there is room for m * n points. Returns how many there are.
template <class Value, class Index>
std::int64_t find_directly(const DirectRadius& search, std::int64_t* indptr, Value* distances, Index* indices);
void count_directly(const DirectRadius& search, std::int64_t* counts);

// Counts, for every query, the listed points whose returned value is at most its limit (for similarities, at least).
// k, self_ids and `checked` are not used.
void count_listed(const DirectSearch& search, const double* limits, std::int64_t* counts);

}  // namespace tonari
