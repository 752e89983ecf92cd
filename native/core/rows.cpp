#include "core/rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
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

constexpr std::int64_t kElements = 1024;  // number of elements that are tested together

// The bits of a number without its sign, as an integer; NaN and infinity exceed the largest finite number.
template <class Bits>
struct Magnitudes {
  Bits mask, largest;
};

// The test for float64, whose bits baseline machines cannot compare in registers: x * 0 is 0 for finite x, else NaN.
bool any_nonfinite(const double* from, std::int64_t count) {
  constexpr int lanes = 8;  // independent sums, so that additions overlap
  double sums[lanes] = {};
  std::int64_t c = 0;
  for (; c + lanes <= count; c += lanes) {
    for (int j = 0; j < lanes; ++j) sums[j] += from[c + j] * 0.0;
  }
  for (; c < count; ++c) sums[0] += from[c] * 0.0;
  double sum = 0;
  for (double part : sums) sum += part;
  return !(sum == 0.0);
}

// Whether one of `count` elements from row i on is NaN or infinite. Compares integers, so that nothing is converted.
bool any_nonfinite(const RowsView& rows, std::int64_t i, std::int64_t count) {
  const auto among = [&]<class Bits>(Magnitudes<Bits> finite) {
    const char* from = static_cast<const char*>(row_pointer(rows, i));
    Bits found = 0;  // not a bool, so that the compiler keeps it in lanes
    for (std::int64_t c = 0; c < count; ++c) {
      Bits bits;
      std::memcpy(&bits, from + c * static_cast<std::int64_t>(sizeof bits), sizeof bits);
      found = static_cast<Bits>(found | static_cast<Bits>((bits & finite.mask) > finite.largest));
    }
    return found != 0;
  };
  switch (rows.dtype) {
    case Dtype::f32: return among(Magnitudes<std::int32_t>{0x7fffffff, 0x7f7fffff});
    case Dtype::f16: return among(Magnitudes<std::int16_t>{0x7fff, 0x7bff});
    case Dtype::bf16: return among(Magnitudes<std::int16_t>{0x7fff, 0x7f7f});
    case Dtype::f64: return any_nonfinite(static_cast<const double*>(row_pointer(rows, i)), count);
    case Dtype::u8:
    case Dtype::i8: break;
  }
  return false;
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
  if (rows.dtype == Dtype::u8 || rows.dtype == Dtype::i8 || rows.d == 0) return -1;
  // Tests several short rows together, so that the loop is long; only if a value is found, its row is determined.
  const bool adjacent = rows.order == nullptr && rows.pitch == 0;
  const std::int64_t at_once = adjacent ? std::max<std::int64_t>(1, kElements / rows.d) : 1;
  for (std::int64_t first = begin; first < end; first += at_once) {
    const std::int64_t last = std::min(first + at_once, end);
    if (!any_nonfinite(rows, first, (last - first) * rows.d)) continue;
    for (std::int64_t i = first; i < last; ++i) {
      if (any_nonfinite(rows, i, rows.d)) return i;
    }
  }
  return -1;
}

bool is_refused(const RowsView& rows) {
  if (rows.dtype != Dtype::f64) return first_nonfinite_row(rows, 0, rows.n) >= 0;
  for (std::int64_t i = 0; i < rows.n; ++i) {
    const double* row = static_cast<const double*>(row_pointer(rows, i));
    std::int64_t inside = 0;  // not a bool, so that the compiler keeps it in lanes
    for (std::int64_t c = 0; c < rows.d; ++c) inside += std::abs(row[c]) <= kLargestFloat64;
    if (inside != rows.d) return true;
  }
  return false;
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
  with_type(rows.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = begin; i < end; i += step) {
      const T* const row = static_cast<const T*>(row_pointer(rows, i));
      for (std::int64_t c = 0; c < rows.d; ++c) sums[c] += to_value<double>(row[c]);
    }
  });
}

double largest_magnitude(const RowsView& rows, std::int64_t step, const double* centre) {
  // The rounded difference from the centre ascends with the value, so a column's smallest and largest values decide.
  const auto d = static_cast<std::size_t>(rows.d);
  double largest = 0;
  with_type(rows.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Value = std::conditional_t<std::is_same_v<T, double>, double, float>;  // represents every stored value
    constexpr Value infinity = std::numeric_limits<Value>::infinity();
    std::vector<Value> lowest(d, infinity), highest(d, -infinity);
    for (std::int64_t i = 0; i < rows.n; i += step) {
      const T* const row = static_cast<const T*>(row_pointer(rows, i));
      for (std::size_t c = 0; c < d; ++c) {
        const Value value = to_value<Value>(row[c]);
        lowest[c] = value < lowest[c] ? value : lowest[c];
        highest[c] = value > highest[c] ? value : highest[c];
      }
    }
    for (std::size_t c = 0; c < d; ++c) {
      if (lowest[c] > highest[c]) continue;  // the column contains only NaN
      const double below = std::fabs(static_cast<double>(lowest[c]) - centre[c]);
      const double above = std::fabs(static_cast<double>(highest[c]) - centre[c]);
      largest = std::max({largest, below, above});
    }
  });
  return largest;
}

std::uint64_t hash_row(const RowsView& rows, std::int64_t i) {
  // Words are added to four sums alternately, so that no addition waits for the product of the previous word.
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15u;  // 2^64 over the golden ratio
  constexpr std::size_t parts = 4, word = sizeof(std::uint64_t);
  const auto* bytes = static_cast<const std::byte*>(row_pointer(rows, i));
  std::uint64_t sums[parts] = {1, 2, 3, 4};
  const auto mix = [](std::uint64_t sum, std::uint64_t more) {
    sum = (sum ^ more) * odd;
    return sum ^ (sum >> 32);
  };
  std::size_t left = static_cast<std::size_t>(rows.d) * dtype_size(rows.dtype), part = 0;
  for (; left > 0; part = (part + 1) % parts) {
    const std::size_t size = std::min(left, word);
    std::uint64_t more = 0;
    std::memcpy(&more, bytes, size);
    sums[part] = mix(sums[part], more);
    bytes += size, left -= size;
  }
  return mix(mix(mix(sums[0], sums[1]), sums[2]), sums[3]);
}

bool same_rows(const RowsView& rows, std::int64_t i, std::int64_t j) {
  const std::size_t size = static_cast<std::size_t>(rows.d) * dtype_size(rows.dtype);
  return std::memcmp(row_pointer(rows, i), row_pointer(rows, j), size) == 0;
}

}  // namespace tonari
