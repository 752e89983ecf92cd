#include "core/rows.hpp"

#include <cmath>
#include <vector>

#include "core/row_values.hpp"

namespace tonari {
namespace {

template <class Test>
std::int64_t first_row(const RowsView& rows, std::int64_t begin, std::int64_t end, Test&& any_bad) {
  std::vector<double> row(static_cast<std::size_t>(rows.d));
  for (std::int64_t i = begin; i < end; ++i) {
    load_row(rows, i, row.data());
    if (any_bad(row.data())) return i;
  }
  return -1;
}

}  // namespace

std::size_t dtype_size(Dtype dtype) {
  return with_type(dtype, [](auto zero) { return sizeof(zero); });
}

void load_row(const RowsView& rows, std::int64_t i, double* out) {
  with_type(rows.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* row = static_cast<const T*>(row_pointer(rows, i));
    for (std::int64_t c = 0; c < rows.d; ++c) out[c] = to_value<double>(row[c]);
  });
}

std::int64_t first_nonfinite_row(const RowsView& rows, std::int64_t begin, std::int64_t end) {
  if (rows.dtype == Dtype::u8 || rows.dtype == Dtype::i8) return -1;
  // x * 0 is 0 for finite x and NaN otherwise, so one sum per row decides without a branch per element.
  return first_row(rows, begin, end, [&](const double* row) {
    constexpr int lanes = 8;  // independent sums, so that additions overlap
    double sums[lanes] = {};
    std::int64_t c = 0;
    for (; c + lanes <= rows.d; c += lanes) {
      for (int j = 0; j < lanes; ++j) sums[j] += row[c + j] * 0.0;
    }
    for (; c < rows.d; ++c) sums[0] += row[c] * 0.0;
    double sum = 0;
    for (double part : sums) sum += part;
    return !(sum == 0.0);
  });
}

std::int64_t first_negative_row(const RowsView& rows, std::int64_t begin, std::int64_t end) {
  if (rows.dtype == Dtype::u8) return -1;
  return first_row(rows, begin, end, [&](const double* row) {
    bool negative = false;
    for (std::int64_t c = 0; c < rows.d; ++c) negative |= row[c] < 0;
    return negative;
  });
}

void add_column_sums(const RowsView& rows, std::int64_t begin, std::int64_t end, std::int64_t step, double* sums) {
  std::vector<double> row(static_cast<std::size_t>(rows.d));
  for (std::int64_t i = begin; i < end; i += step) {
    load_row(rows, i, row.data());
    for (std::int64_t c = 0; c < rows.d; ++c) sums[c] += row[static_cast<std::size_t>(c)];
  }
}

double largest_magnitude(const RowsView& rows, std::int64_t begin, std::int64_t end, const double* centre) {
  std::vector<double> row(static_cast<std::size_t>(rows.d)), zeros;
  if (centre == nullptr) {
    zeros.assign(static_cast<std::size_t>(rows.d), 0.0);
    centre = zeros.data();
  }
  double largest = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    load_row(rows, i, row.data());
    for (std::int64_t c = 0; c < rows.d; ++c) {
      const double magnitude = std::fabs(row[static_cast<std::size_t>(c)] - centre[c]);
      largest = magnitude > largest ? magnitude : largest;
    }
  }
  return largest;
}

}  // namespace tonari
