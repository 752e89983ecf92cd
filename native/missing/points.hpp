// Points with missing values (NaN), packed for the screen (missing/block.hpp).
//
// Rows are centred by the mean of each column and multiplied by a power of two, so that a typical row has numbers of at
// most 1. The results are rounded to float32; a number beyond its range becomes infinity, which no bound excludes.
// Groups of 64 points are stored column by column:
//
//     values[(group d + column) 64 + place]        float32; NaN where the value is missing
//     present[(group words + column / 64) 64 + place], bit column % 64        whether the point has the value
//
// Places beyond the last point have no values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/aligned_bytes.hpp"
#include "core/common.hpp"

namespace tonari {

constexpr std::int64_t kMissingGroup = 64;

inline std::int64_t missing_groups(std::int64_t n) { return (n + kMissingGroup - 1) / kMissingGroup; }
inline std::int64_t missing_words(std::int64_t d) { return (d + 63) / 64; }

// The centring and scaling of all rows, which depend on the points.
struct MissingForm {
  std::vector<double> centre;
  double scale = 1;  // a power of two

  explicit MissingForm(const RowsView& points);

  // Writes the transformed row, NaN where a value is missing, and returns at least the length of its rounding errors.
  float transform(const double* row, float* out) const;
};

struct MissingPoints {
  RowsView rows;
  MissingForm form;
  AlignedVector<float> values;
  AlignedVector<std::uint64_t> present;
  std::vector<float> errors;  // for each group, the largest error of its points

  explicit MissingPoints(const RowsView& points);

  std::int64_t bytes() const;
};

}  // namespace tonari
