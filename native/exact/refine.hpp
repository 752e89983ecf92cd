// The exact value of (query, point), bit for bit the same on every instruction set and device.
//
// All arithmetic is float64 on the original rows: each term is rounded, then added to partial sum i % 16 in order of i,
// and the 16 sums are added in halves. No fused multiply-add. tonari.metrics.definitions states the same in NumPy.
#pragma once

#include <vector>

#include "core/cpu.hpp"
#include "exact/form.hpp"

namespace tonari {

// One query, ready to be compared: float64, mean removed for correlation, with its norm where the metric needs it.
struct ExactQuery {
  std::vector<double> row;
  double norm = 0;
};

ExactQuery exact_query(Metric metric, const RowsView& queries, std::int64_t i);

// values[j] = value of (query, points[ids[j]]) before rounding to the output type.
using ExactValues = void (*)(Metric metric, const ExactQuery& query, const RowsView& points, const std::int64_t* ids,
                             std::int64_t count, double* values);

ExactValues exact_values(Isa isa);

}  // namespace tonari
