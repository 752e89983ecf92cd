// A block of queries among points with missing values: the k nearest points of each, or all within a limit.
//
// The value of a pair with C > 0 common columns is sqrt(N d / C), where N is the sum of the squared differences in these
// columns; pairs without a common column have no value. The value is at most r exactly if
//
//     N  <=  t C,      t = r^2 / d.
//
// The screen computes N in float32 from the transformed rows (missing/points.hpp). Let s >= scale sqrt(t), with a margin
// for the roundings of the float64 value; let e and e' be bounds of the errors of the transformed query and point, and c
// the columns of the query. For a pair within the limit the transformed rows differ by at most s sqrt(C) + e + e', and
// as C <= c, the computed sum is at most
//
//     (1 + gamma) (s sqrt(C) + e + e')^2  <=  slope C + offset,
//     slope = (1 + gamma) s^2,    offset = (1 + gamma) (2 s sqrt(c) (e + e') + (e + e')^2),    gamma = (c + 4) 2^-24 (1 + ...)
//
// All differences have relative errors only, so no digits cancel. Points that do not exceed this bound get their float64
// value, which alone decides. For the k nearest, r is the k-th smallest value so far.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "missing/loops.hpp"
#include "missing/points.hpp"

namespace tonari {

// The conditions of a search. k: only the k nearest points are found; 0 for all, which needs limits. limits: the largest
// value that each query accepts. own: for each query a point that it does not find. later: a query finds only points
// after its own. counted: points are counted, and not stored. narrow: returned values are float32.
struct MissingRequest {
  std::int64_t k = 1;
  const double* limits = nullptr;
  const std::int64_t* own = nullptr;
  bool later = false;
  bool counted = false;
  bool narrow = false;
};

class MissingBlock {
 public:
  MissingBlock(Isa isa, const MissingPoints& points, const RowsView& queries, const MissingRequest& request);

  // Compares with groups [begin, end) of the points, in ascending order of all calls.
  void scan(std::int64_t begin, std::int64_t end);

  std::int64_t count() const { return static_cast<std::int64_t>(queries_.size()); }
  // The number of points found for a query.
  std::int64_t found(std::int64_t query) const { return queries_[static_cast<std::size_t>(query)].found; }
  // The number of pairs whose float64 values have been computed.
  std::int64_t refined() const { return refined_; }
  // Writes the lists of all queries one after another, each nearest first, and clears them.
  template <class Value, class Index>
  void write(Value* distances, Index* indices);

 private:
  using Pair = std::pair<double, std::int64_t>;  // a returned value and a point
  struct Query {
    MissingQuery screened;
    double limit = 0;   // the largest value that is kept
    double root = 0;    // an upper bound of sqrt(c)
    double growth = 1;  // 1 + gamma
    float error = 0;    // e
    float slope = 0;
    float reach = 0;  // an upper bound of 2 (1 + gamma) s sqrt(c)
    std::int64_t own = -1;
    std::int64_t found = 0;
    std::vector<Pair> pairs;  // for the k nearest a heap, the farthest first
  };

  void limit_to(Query& query, double value);
  void keep(std::size_t at, std::int64_t point);

  const MissingLoops& loops_;
  const MissingPoints& points_;
  MissingRequest request_;
  std::int64_t width_;        // d, rounded up to a multiple of 16
  std::vector<double> rows_;  // the queries, followed by NaN up to that width
  std::vector<float> values_;
  std::vector<std::int32_t> columns_;
  std::vector<std::uint64_t> present_;
  std::vector<Query> queries_;
  std::int64_t refined_ = 0;
};

// The float64 values of the pairs queries[rows[i]], points[ids[i]]; NaN without a common column.
void missing_values(Isa isa, const RowsView& queries, const RowsView& points, const std::int64_t* rows,
                    const std::int64_t* ids, std::int64_t count, double* values);

}  // namespace tonari
