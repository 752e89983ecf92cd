// The exact value of a query and a point, with the same bits on every instruction set and device.
//
// All arithmetic is float64 on the original rows: each term is rounded, then added to partial sum i % 16 in order of i,
// and the 16 sums are added in halves. No multiply-add is fused. tonari.metrics.definitions has the same in NumPy.
#pragma once

#include <vector>

#include "core/cpu.hpp"
#include "exact/form.hpp"

namespace tonari {

// A query in float64, prepared for comparisons: for correlation its mean is subtracted, and its norm is stored if the
// metric needs it.
struct ExactQuery {
  std::vector<double> row;  // zeros at the end make the number of columns a multiple of 16
  double norm = 0;
};

ExactQuery exact_query(Metric metric, const RowsView& queries, std::int64_t i);

// Computes values[j] = the value of the query and points[ids[j]], before rounding to the output type.
using ExactValues = void (*)(Metric metric, const ExactQuery& query, const RowsView& points, const std::int64_t* ids,
                             std::int64_t count, double* values);

ExactValues exact_values(Isa isa);

// The same for points of few columns that are stored column by column in float64: element c of point j is columns[c *
// stride + j]. Behind each column is room for whole lanes. Not for angular metrics; d is at most kFewColumns.
constexpr std::int64_t kFewColumns = 8;
using ColumnValues = void (*)(Metric metric, const ExactQuery& query, const double* columns, std::int64_t stride,
                              std::int64_t d, std::int64_t count, double* values);

ColumnValues column_values(Isa isa);

// Estimates of squared distances in float32: estimates[q * stride + j] = S(query_q - x_j)^2, x_j being row j of
// `points`. Queries are adjacent, and zeros at the end of each make its number of columns a multiple of 16. Each of the
// d terms has at most estimate_roundings(d) roundings.
using SquareEstimates = void (*)(const float* queries, std::int64_t m, const float* points, std::int64_t d,
                                 std::int64_t count, float* estimates, std::int64_t stride);

SquareEstimates square_estimates(Isa isa);

// The rounding of the difference counts twice, because it is squared; the others are those of the square, of the
// additions within a lane, and of the addition of the 16 lanes in halves.
constexpr std::int64_t estimate_roundings(std::int64_t d) { return 2 + 1 + (d + kLanes - 1) / kLanes + 4; }

}  // namespace tonari
