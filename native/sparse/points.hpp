// Sparse points, prepared for the screen (sparse/block.hpp).
//
// Columns are numbered by rank: the column that occurs in the most points is first. Four bounds divide the ranks into
// levels:
//
//     rank < bound[0]                   dense       columns that at least one point in kDenseShare has: dense arrays,
//                                                   heavy[begin * bound[0] + rank * length + i] for point begin + i of
//                                                   the block of `length` points from `begin` on
//     bound[0] <= rank < bound[kRare]   frequent    inverted lists of each block of points, one after another
//     bound[kRare] <= rank              rare        inverted lists of all points
//
// For each bound, the norm of the elements of smaller rank is stored for every point. The elements of rank
// < bound[kRare] are also stored by rows, in ascending order of rank, to complete the products of single points.
//
// Values are scaled and stored as float32. For cosine each row is scaled to length 1; for other metrics all rows are
// scaled by the same power of two, so that the longest has at most length 1. Sets have the value 1 in each of their
// columns, which is not scaled: the square of a row's length is its number of columns, and `half` is that number.
#pragma once

#include <cstdint>
#include <vector>

#include "core/at_least.hpp"
#include "sparse/rows.hpp"

namespace tonari {

constexpr std::int64_t kSparseBlock =
    4096;  // points whose sums are in memory at once: they fit in the first-level cache
constexpr int kSparseBounds = 4, kRare = kSparseBounds - 1;
constexpr std::int64_t kDenseShare = 10, kFrequentShare = 64, kCommonShare = 192, kRareShare = 512;
constexpr double kShortest = 0x1p-450;  // shorter rows are not screened: their products lose bits in float64

inline std::int64_t sparse_blocks(std::int64_t n) { return (n + kSparseBlock - 1) / kSparseBlock; }

// An entry of an inverted list: a point (in the list of a block, its place in the block) and its scaled value.
struct SparseTerm {
  std::int32_t point;
  float weight;
};

struct SparsePoints {
  Metric metric = Metric::sqeuclidean;
  bool sets = false;  // whether rows are sets, compared by their Jaccard distance; the metric is then sqeuclidean
  SparseRows rows;
  std::int64_t most_entries = 0;  // number of entries in the longest row
  std::int64_t bound[kSparseBounds] = {};
  double scale = 1;      // the power of two by which values were divided
  bool screened = true;  // whether the screen has float32 values
  bool positive = true;  // whether all float32 values are at least kLeastFactor, so that products of them are not 0
  std::vector<double> squares;             // S(x * x)
  std::vector<float> half;                 // half the squared length; empty unless the metric has squares; of sets all
  std::vector<float> reach;                // at least the length, by which errors grow; empty if 1 for all points
  std::vector<float> rest[kSparseBounds];  // at least the length of the part of smaller rank
  std::vector<float> heavy;
  std::vector<std::int64_t> counts;        // number of points that have the column of each rank
  std::vector<std::int64_t> marks;         // list r of block b begins at marks[b * (frequent() + 1) + r]
  std::vector<SparseTerm> frequent_terms;  // the lists of rank bound[0] + r
  std::vector<std::int64_t> starts;        // the list of rank bound[kRare] + r begins at starts[r]
  std::vector<SparseTerm> rare_terms;
  std::vector<std::int64_t> row_starts;
  std::vector<std::int32_t> row_ranks;
  std::vector<float> row_weights;

  // `ranks` has the rank of each entry of the rows; counts descend.
  SparsePoints(Metric metric, bool sets, const SparseRows& rows, const std::int32_t* ranks, std::int64_t ranked);

  std::int64_t frequent() const { return bound[kRare] - bound[0]; }
  bool has_squares() const { return is_euclidean(metric); }
  std::int64_t bytes() const;
};

constexpr float kLeastFactor = 0x1p-60f;

}  // namespace tonari
