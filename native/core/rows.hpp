// Reads rows of any accepted type as float64.
#pragma once

#include <cstring>

#include "core/common.hpp"

namespace tonari {

std::size_t dtype_size(Dtype dtype);

// Writes row `i` as float64 to `out`, which has room for rows.d values; exact for all accepted types.
void load_row(const RowsView& rows, std::int64_t i, double* out);

inline const void* row_pointer(const RowsView& rows, std::int64_t i) {
  const std::int64_t row = rows.order != nullptr ? rows.order[i] : i;
  if (rows.pitch != 0) return static_cast<const char*>(rows.data) + row * rows.pitch;
  return static_cast<const char*>(rows.data) + static_cast<std::size_t>(row * rows.d) * dtype_size(rows.dtype);
}

// The first row of [begin, end) that contains NaN or infinity (for the second function, or a negative value), or -1.
std::int64_t first_nonfinite_row(const RowsView& rows, std::int64_t begin, std::int64_t end);
// Whether a value is NaN, infinite or, in float64, beyond kLargestFloat64: LARGEST_FLOAT64 of
// src/tonari/inputs/arrays/values.py.
constexpr double kLargestFloat64 = 1e150;
bool is_refused(const RowsView& rows);
std::int64_t first_negative_row(const RowsView& rows, std::int64_t begin, std::int64_t end);

// Adds every step-th row of [begin, end) to `sums`, column by column (d values).
void add_column_sums(const RowsView& rows, std::int64_t begin, std::int64_t end, std::int64_t step, double* sums);

// The largest |x_i - centre_i| over every step-th row; NaN is left out.
double largest_magnitude(const RowsView& rows, std::int64_t step, const double* centre);

// A hash of row i: copies of the row have the same hash, and other rows rarely do. -0 and 0 differ.
std::uint64_t hash_row(const RowsView& rows, std::int64_t i);
bool same_rows(const RowsView& rows, std::int64_t i, std::int64_t j);

}  // namespace tonari
