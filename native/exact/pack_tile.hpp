// The loops of packing (exact/pack_loops.hpp), on vectors of 8 or 16 float64 in as many registers as those take.
// Internal linkage throughout: each instruction set compiles its own copy.
//
//   form        x' = scale (x - centre), x / |x|, (x - mean) / |x - mean| or scale x (exact/form.hpp)
//   float32     x^ = x' rounded once; bfloat16: rounded to float32, then to nearest even
//   contracted  f(x) = (V^T x', sqrt(|x'|^2 - |V^T x'|^2)), 2 or 4 rows by 16 directions at a time
//   int8        x^ = step * min(max(nearest(x' / step), -limit - 1), limit)
//   norms       S(x' x'), S(x^ x^), S((x' - x^)^2), in 8 partial sums that are added in halves
#pragma once

#include <cmath>
#include <limits>

#include "core/row_values.hpp"
#include "exact/pack_loops.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

using Lanes = Vec<double, kLanes>;  // the lanes of the defined order, for the norm of an angular form
using Half = Vec<double, 8>;        // three sums fit into the registers of AVX2

// Packed values this small are rounded to zero, which avoids slow arithmetic on subnormals; the measured difference
// accounts for it.
constexpr double kFlush = 0x1p-60;
// In the product of two rows with at least this squared norm, the relative error by underflow is below 2^-100.
constexpr double kSmallestSquare = 0x1p-960;

template <class V>
inline double total(V sums) {
  return fold(sums, [](auto a, auto b) { return a + b; });
}

// Rounds to the nearest integer, ties to even, without a library call; exact below 2^51.
template <class V>
inline V nearest(V x) {
  const V magic = 0x1.8p52;
  return (x + magic) - magic;
}

// row[i] = f(row[i], i)
template <class F>
inline void replace(double* row, std::int64_t d, const F& f) {
  for (std::int64_t i = 0; i < d; i += kLanes) f(Lanes::load(row + i), i).store(row + i);
}

template <class T>
inline void load_padded(const T* from, std::int64_t d, double* row) {
  std::int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes) Lanes::load(from + i).store(row + i);
  if (i == d) return;
  T end[kLanes] = {};
  std::memcpy(end, from + i, static_cast<std::size_t>(d - i) * sizeof(T));
  Lanes::load(end).store(row + i);
}

inline void to_angular_form(const Form& form, double* row) {
  if (removes_mean(form.metric)) remove_mean(row, form.d);
  Lanes squares = 0.0;
  for (std::int64_t i = 0; i < form.d; i += kLanes) {
    const Lanes x = Lanes::load(row + i);
    squares = squares + x * x;
  }
  const double square = total(squares), norm = std::sqrt(square);
  if (square != 0 && square < kSmallestSquare) {  // its products underflow: only exact values can decide
    replace(row, form.d, [](Lanes, std::int64_t) { return Lanes(std::numeric_limits<double>::quiet_NaN()); });
  } else if (norm == 0) {
    replace(row, form.d, [](Lanes, std::int64_t) { return Lanes(0.0); });
  } else {
    replace(row, form.d, [norm](Lanes x, std::int64_t) { return x / norm; });
  }
}

inline void to_elementwise_form(const Form& form, double* row) {
  with_term(form.metric, [&](auto term) {
    using Term = decltype(term);
    replace(row, form.d, [scale = form.scale](Lanes x, std::int64_t) {
      const Lanes scaled = x * scale, lost = std::numeric_limits<double>::quiet_NaN();
      if constexpr (Term::degree == 0) {  // underflow may take a large part of the value
        return choose((abs(x) > 0.0) & (abs(scaled) < std::numeric_limits<double>::min()), lost, scaled);
      } else if constexpr (Term::largest < std::numeric_limits<double>::infinity()) {
        return choose(abs(scaled) <= Term::largest, scaled, lost);
      } else {
        return scaled;
      }
    });
  });
}

// row = scale (from - centre), and its squared norm.
template <class T>
inline double read_centred(const Form& form, const T* from, double* row) {
  const double* const centre = form.centre.data();
  const double scale = form.scale;
  Half square = 0.0;
  const auto take = [&](Half x, std::int64_t at) {
    const Half y = (x - Half::load(centre + at)) * scale;
    y.store(row + at);
    square = square + y * y;
  };
  std::int64_t i = 0;
  for (; i + Half::lanes <= form.d; i += Half::lanes) take(Half::load(from + i), i);
  T end[kLanes] = {};
  std::memcpy(end, from + i, static_cast<std::size_t>(form.d - i) * sizeof(T));
  for (std::int64_t at = 0; i + at < padded(form.d); at += Half::lanes) take(Half::load(end + at), i + at);
  return total(square);
}

inline double square_of(const Form& form, const double* row) {
  Half square = 0.0;
  for (std::int64_t at = 0; at < form.d; at += Half::lanes) {
    const Half x = Half::load(row + at);
    square = square + x * x;
  }
  return total(square);
}

inline RowTerms read(const Form& form, const RowsView& rows, std::int64_t i, double* row) {
  RowTerms terms;
  const Family family = family_of(form.metric);
  with_type(rows.dtype, [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(row_pointer(rows, i));
    if (family == Family::squares || family == Family::products) terms.square = read_centred(form, from, row);
    else load_padded(from, rows.d, row);
  });
  if (family == Family::angles || family == Family::terms) {
    if (family == Family::angles) to_angular_form(form, row);
    else to_elementwise_form(form, row);
    terms.square = square_of(form, row);
  }
  if (form.centre_square > 0) {
    Half product = 0.0;
    for (std::int64_t at = 0; at < form.d; at += Half::lanes) {
      product = product + Half::load(form.centre.data() + at) * form.scale * Half::load(row + at);
    }
    terms.centre = total(product);
  }
  return terms;
}

// Half of the registers hold sums; on AVX-512, all registers that broadcasts do not need. A panel is read once for so
// many rows; on AVX-512 these are a whole group of points. Moments are added for whole padded rows.
constexpr int kRowsAtOnce = kRegisterLanes<double> >= 8 ? 12 : 2;
constexpr int kMomentsAtOnce = kRegisterLanes<double> >= 8 ? 8 : 2;
static_assert(kLanes % kMomentsAtOnce == 0);

// products[r] = S(rows[r][i] matrix[i]) for ROWS rows, panel by panel of the matrix.
template <int ROWS>
inline void multiply_rows(const double* rows, std::int64_t d, const double* matrix, std::int64_t width,
                          double* products, std::int64_t apart) {
  for (std::int64_t first = 0; first < width; first += Lanes::lanes) {
    Lanes sums[ROWS];
    for (int r = 0; r < ROWS; ++r) sums[r] = 0.0;
    const double* const panel = matrix + first * padded(d);
    for (std::int64_t i = 0; i < d; ++i) {
      const Lanes v = Lanes::load(panel + i * Lanes::lanes);
      for (int r = 0; r < ROWS; ++r) sums[r] = fma(Lanes(rows[r * padded(d) + i]), v, sums[r]);
    }
    for (int r = 0; r < ROWS; ++r) sums[r].store(products + r * apart + first);
  }
}

// The same for any number of rows, whose products lie `apart` values apart, in blocks of at most ROWS rows.
template <int ROWS = kRowsAtOnce>
inline void multiply_all(const double* rows, std::int64_t count, std::int64_t d, const double* matrix,
                         std::int64_t width, double* products, std::int64_t apart) {
  std::int64_t r = 0;
  for (; r + ROWS <= count; r += ROWS) {
    multiply_rows<ROWS>(rows + r * padded(d), d, matrix, width, products + r * apart, apart);
  }
  if constexpr (ROWS > 1) {
    multiply_all<ROWS / 2>(rows + r * padded(d), count - r, d, matrix, width, products + r * apart, apart);
  }
}

inline void multiply(const double* rows, std::int64_t count, std::int64_t d, const double* matrix, std::int64_t width,
                     double* products) {
  multiply_all(rows, count, d, matrix, width, products, width);
}

// moments[i] += S(rows[r][i] products[r]), kMomentsAtOnce of i at a time.
inline void add_moments(const double* rows, std::int64_t count, std::int64_t d, const double* products,
                        std::int64_t width, double* moments) {
  for (std::int64_t first = 0; first < width; first += Lanes::lanes) {
    double* const panel = moments + first * padded(d);
    for (std::int64_t i = 0; i < padded(d); i += kMomentsAtOnce) {
      Lanes sums[kMomentsAtOnce];
      for (int j = 0; j < kMomentsAtOnce; ++j) sums[j] = Lanes::load(panel + (i + j) * Lanes::lanes);
      for (std::int64_t r = 0; r < count; ++r) {
        const Lanes y = Lanes::load(products + r * width + first);
        for (int j = 0; j < kMomentsAtOnce; ++j) sums[j] = fma(Lanes(rows[r * padded(d) + i + j]), y, sums[j]);
      }
      for (int j = 0; j < kMomentsAtOnce; ++j) sums[j].store(panel + (i + j) * Lanes::lanes);
    }
  }
}

// The last column of a row whose other columns are V^T x', and a bound on the distance of the computed row from f(x).
inline void complete(const Form& form, RowTerms& terms, double* row) {
  constexpr double unit = 0x1p-53;
  const std::int64_t count = form.directions.count;
  Half squares = 0.0;
  for (std::int64_t at = 0; at < padded(count); at += Half::lanes) {
    const Half y = Half::load(row + at);
    squares = squares + y * y;
  }
  const double rest = terms.square - total(squares), last = rest > 0 ? std::sqrt(rest) : 0;
  for (std::int64_t at = count; at < padded(count + 1); ++at) row[at] = 0;
  row[count] = last;
  // The products are off by `product` |x'|, and last^2 by `square`, which is at most that of `last` times `last`.
  const double sums = static_cast<double>(form.d + 16), root = std::sqrt(static_cast<double>(count));
  const double size = std::sqrt(terms.square), product = 2 * unit * sums * root;
  const double square = 4 * unit * sums * (root + 2) * terms.square;
  const double off = last * last > square ? square / last : std::sqrt(square);
  terms.error = (product * size + off + 4 * unit * last) * (1 + 0x1p-20) + 0x1p-500;
}

inline void contract(const Form& form, const double* rows, std::int64_t count, RowTerms* terms, double* contracted) {
  const std::int64_t apart = padded(form.columns());
  multiply_all(rows, count, form.d, form.directions.panels.data(), padded(form.directions.count), contracted, apart);
  for (std::int64_t r = 0; r < count; ++r) complete(form, terms[r], contracted + r * apart);
}

inline Span span(const double* row, std::int64_t d) {
  Half lowest = 0.0, highest = 0.0, part = 0.0;
  for (std::int64_t i = 0; i < d; i += Half::lanes) {
    const Half x = Half::load(row + i);
    lowest = min(x, lowest), highest = max(x, highest), part = max(abs(x - nearest(x)), part);
  }
  const auto most = [](auto a, auto b) { return max(a, b); };
  Span found;
  found.lowest = fold(lowest, [](auto a, auto b) { return min(a, b); }), found.highest = fold(highest, most);
  found.largest = found.highest > -found.lowest ? found.highest : -found.lowest;
  found.whole = fold(part, most) == 0;
  return found;
}

// Elements after the first d become zeros.
template <class Stored>
inline void clear_end(std::byte* elements, std::int64_t d) {
  std::memset(elements + d * static_cast<std::int64_t>(sizeof(Stored)), 0,
              static_cast<std::size_t>(padded(d) - d) * sizeof(Stored));
}

template <class Stored>
inline void round_to(const double* row, std::int64_t d, double factor, std::byte* elements, double* rounded) {
  Stored* stored = reinterpret_cast<Stored*>(elements);
  const double inverse = 1 / factor;
  for (std::int64_t i = 0; i < padded(d); i += Half::lanes) {
    const Half x = Half::load(row + i);
    (choose(abs(x) < kFlush, Half(0.0), x) * factor).store(stored + i);
    (Half::load(stored + i) * inverse).store(rounded + i);
  }
  clear_end<Stored>(elements, d);  // of -0
}

inline void round(Precision precision, const double* row, std::int64_t d, double factor, std::byte* elements,
                  double* rounded) {
  if (precision == Precision::bfloat16) round_to<Bfloat16>(row, d, factor, elements, rounded);
  else round_to<float>(row, d, factor, elements, rounded);
}

inline std::int32_t round_int8(const double* row, std::int64_t d, double step, double limit, int offset,
                               std::byte* elements, double* rounded) {
  const double inverse = 1.0 / step, first = static_cast<double>(offset);
  Half sum = 0.0;
  for (std::int64_t i = 0; i < padded(d); i += Half::lanes) {
    const Half steps = min(max(nearest(Half::load(row + i) * inverse), -limit - 1), limit);
    (steps + first).store(reinterpret_cast<std::int8_t*>(elements) + i);
    (steps * step).store(rounded + i);
    sum = sum + steps;
  }
  clear_end<std::int8_t>(elements, d);  // of the offset
  return static_cast<std::int32_t>(total(sum));
}

struct SquaredNorms {
  static constexpr bool maximum = false;
  template <class V> static V size(V x) { return x * x; }
  template <class V> static V difference(V x, V y) { return (x - y) * (x - y); }
};

// BY: SquaredNorms, or the struct of an elementwise metric.
template <class BY>
inline Norms measured_by(const double* exact, const double* rounded, std::int64_t d) {
  const auto join = [](auto a, auto b) {
    if constexpr (BY::maximum) return max(b, a);
    else return a + b;
  };
  Half size = 0.0, rounded_size = 0.0, difference = 0.0;
  for (std::int64_t i = 0; i < d; i += Half::lanes) {
    const Half x = Half::load(exact + i), y = Half::load(rounded + i);
    size = join(size, BY::size(x)), rounded_size = join(rounded_size, BY::size(y));
    difference = join(difference, BY::difference(x, y));
  }
  return {.exact = fold(size, join), .rounded = fold(rounded_size, join), .difference = fold(difference, join)};
}

inline Norms measure(Metric metric, const double* exact, const double* rounded, std::int64_t d) {
  constexpr double few = 0x1p-50;  // the form row itself has a few float64 roundings
  if (is_elementwise(metric)) {
    return with_term(metric, [&](auto term) {
      Norms norms = measured_by<decltype(term)>(exact, rounded, d);
      norms.difference = decltype(term)::stretch * (norms.difference + few * norms.exact);
      return norms;
    });
  }
  Norms norms = measured_by<SquaredNorms>(exact, rounded, d);
  norms.exact = std::sqrt(norms.exact), norms.rounded = std::sqrt(norms.rounded);
  norms.difference = std::sqrt(norms.difference) + few * norms.exact;
  return norms;
}

constexpr PackLoops kPackLoops{.read = read,
                               .multiply = multiply,
                               .add_moments = add_moments,
                               .contract = contract,
                               .span = span,
                               .round = round,
                               .round_int8 = round_int8,
                               .measure = measure};

}  // namespace
}  // namespace tonari
