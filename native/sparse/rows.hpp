// Sparse rows, and the exact value of a pair of them.
//
// A row has its columns in ascending order, each once, and no zeros. The value of a pair has the bits of the value of
// the same rows as dense arrays (exact/refine_tile.hpp): the term of column c is added to lane c % 16, in ascending
// order of c, and the 16 lanes are folded in halves. Columns in which both rows are 0 would add 0 to a lane that is not
// -0, which changes no bit, so they are left out; a product also vanishes if one of the rows is 0.
#pragma once

#include <cstdint>

#include "core/common.hpp"
#include "core/metrics.hpp"

namespace tonari {

// Compressed rows of float32 or, if `wide`, of float64.
struct SparseRows {
  const std::int64_t* indptr = nullptr;
  const std::int32_t* columns = nullptr;
  const void* values = nullptr;
  bool wide = false;
  std::int64_t n = 0;
  std::int64_t d = 0;

  std::int64_t entries(std::int64_t row) const { return indptr[row + 1] - indptr[row]; }
  double at(std::int64_t entry) const {
    return wide ? static_cast<const double*>(values)[entry] : static_cast<const float*>(values)[entry];
  }
};

// S(x * x) of a row.
double sparse_square(const SparseRows& rows, std::int64_t row);

// The Jaccard distance, a float32 number, of two rows as the sets of their columns.
float sparse_jaccard(const SparseRows& queries, std::int64_t query, const SparseRows& points, std::int64_t point);

// The float64 value of two rows of the same width, whose squares S(q * q) and S(x * x) are known. A larger inner product
// is a nearer point.
double sparse_value(Metric metric, const SparseRows& queries, std::int64_t query, double query_square,
                    const SparseRows& points, std::int64_t point, double point_square);

}  // namespace tonari
