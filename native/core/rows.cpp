#include "core/rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/row_values.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kLookedAt = 8192;  // values that are checked at a time

// NaN and infinity have an exponent of ones: one more in its last bit carries into the sign.
template <class T>
bool any_nonfinite(const T* values, std::int64_t count) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  constexpr int fraction = std::is_same_v<T, double>    ? 52
                           : std::is_same_v<T, float>   ? 23
                           : std::is_same_v<T, Float16> ? 10
                                                        : 7;
  constexpr Bits one = Bits{1} << fraction, sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  Bits seen = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Bits magnitude = static_cast<Bits>(std::bit_cast<Bits>(values[i]) & ~sign);
    seen = static_cast<Bits>(seen | (magnitude + one));
  }
  return (seen & sign) != 0;
}

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
  return with_type(rows.dtype, [&](auto zero) -> std::int64_t {
    using T = decltype(zero);
    if constexpr (sizeof(T) == 1) {
      return -1;
    } else {
      const auto any_in = [&](std::int64_t first, std::int64_t last) {
        return any_nonfinite(static_cast<const T*>(row_pointer(rows, first)), (last - first) * rows.d);
      };
      const std::int64_t step = rows.order != nullptr ? 1 : std::max<std::int64_t>(1, kLookedAt / rows.d);
      for (std::int64_t i = begin; i < end; i += step) {
        const std::int64_t last = std::min(end, i + step);
        if (!any_in(i, last)) continue;
        while (!any_in(i, i + 1)) ++i;
        return i;
      }
      return -1;
    }
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
