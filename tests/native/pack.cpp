// The loops of native/exact/pack_tile.hpp against plain loops, for the instruction set that this is compiled for
// (test_pack.py). Prints what differs, or a number that depends on all bits.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "exact/pack_tile.hpp"

using namespace tonari;

namespace {

using Row = std::vector<double>;

int failures = 0;
std::uint64_t seen = 0;

void expect(const char* what, bool holds, Metric metric, std::int64_t d) {
  if (!holds && ++failures <= 10) std::printf("%s: %s, d=%d\n", what, metric_name(metric), static_cast<int>(d));
}

template <class T>
void look(const T* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, values + i, sizeof(T));
    if (!(values[i] == values[i])) bits = 1;  // signs of NaN are nobody's
    seen = (seen ^ bits) * 0x100000001b3u + (seen >> 29);
  }
}

bool same(const Row& a, const Row& b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]))) return false;
  }
  return true;
}

std::mt19937_64 draws(20260102);

// Rows of several kinds: of every size, whole numbers, ties of rounding, zeros, one value, beyond float32,
// and near the smallest float64.
double draw(int kind) {
  const double x = static_cast<double>(static_cast<std::int64_t>(draws())) * 0x1p-63;
  switch (kind) {
    case 0: return x;
    case 1: return std::ldexp(x, static_cast<int>(draws() % 240) - 160);
    case 2: return std::nearbyint(x * 128);
    case 3: return std::nearbyint(x * 200) / 2;
    case 4: return draws() % 2 == 0 ? 0.0 : -0.0;
    case 5: return 3;
    case 6: return 1000 + x * 0x1p-20;
    case 7: return x * 0x1p-490;   // products underflow
    case 8: return x * 0x1p-1019;  // and these when they are scaled
    default: return x * 1e140;
  }
}
constexpr int kKinds = 10;

Row plain_form(const Form& form, Row row) {
  if (removes_mean(form.metric)) remove_mean(row.data(), form.d);
  Row squares(row);
  for (double& x : squares) x *= x;
  const double square = lane_sum(squares.data(), form.d), norm = std::sqrt(square), nan = std::nan("");
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double x = row[i];
    switch (family_of(form.metric)) {
      case Family::angles: row[i] = square != 0 && square < 0x1p-960 ? nan : norm == 0 ? 0 : x / norm; break;
      case Family::terms:
        row[i] = with_term(form.metric, [&](auto term) {
          const double scaled = std::fabs(x * form.scale);
          return (term.degree == 0 && x != 0 && scaled < 0x1p-1022) || !(scaled <= term.largest) ? nan : x * form.scale;
        });
        break;
      default: row[i] = (x - form.centre[i]) * form.scale;
    }
  }
  return row;
}

// Whether a sum of terms of one sign, or of terms whose magnitudes have that sum, is what it should be.
bool near(double found, long double wanted, long double magnitudes, std::int64_t d) {
  return std::fabs(found - wanted) <= static_cast<long double>(d + 16) * 0x1p-52L * magnitudes + 0x1p-1000L;
}

template <class BY>
void check_norms(Metric metric, const Row& row, const Row& rounded, std::int64_t d) {
  const Norms found = kPackLoops.measure(metric, row.data(), rounded.data(), d);
  look(&found.exact, 1), look(&found.rounded, 1), look(&found.difference, 1);
  using One = Vec<double, kRegisterLanes<double>>;
  long double sums[3] = {};
  for (std::size_t i = 0; i < static_cast<std::size_t>(d); ++i) {
    const One x = row[i], y = rounded[i];
    const double terms[] = {BY::size(x)[0], BY::size(y)[0], BY::difference(x, y)[0]};
    for (int j = 0; j < 3; ++j) {
      if constexpr (BY::maximum) sums[j] = std::fmax(sums[j], static_cast<long double>(terms[j]));
      else sums[j] += terms[j];
    }
  }
  long double stretch = 1;
  if constexpr (std::is_same_v<BY, SquaredNorms>)
    for (long double& sum : sums) sum = std::sqrt(sum);
  else stretch = BY::stretch;
  const long double difference = stretch * (sums[2] + 0x1p-50L * sums[0]);
  expect("norm", near(found.exact, sums[0], sums[0], d), metric, d);
  expect("norm of the rounded row", near(found.rounded, sums[1], sums[1], d), metric, d);
  expect("norm of the difference", near(found.difference, difference, difference, d), metric, d);
}

void check_rounding(Metric metric, const Row& row, std::int64_t d) {
  const auto width = static_cast<std::size_t>(padded(d));
  const double nan = std::nan("");
  const auto measure = [&](const Row& rounded) {
    if (!is_elementwise(metric)) return check_norms<SquaredNorms>(metric, row, rounded, d);
    with_term(metric, [&](auto term) { check_norms<decltype(term)>(metric, row, rounded, d); });
  };
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    for (const double factor : {1.0, -2.0}) {
      std::vector<std::byte> elements(width * 4, std::byte{255});
      Row rounded(width, nan), wanted(width, 0.0);
      kPackLoops.round(precision, row.data(), d, factor, elements.data(), rounded.data());
      bool right = true;
      for (std::size_t i = 0; i < width; ++i) {
        float value = std::fabs(row[i]) >= 0x1p-60 ? static_cast<float>(row[i]) : 0.0f, element = 0;
        if (precision == Precision::bfloat16) {
          std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
          bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
          value = std::bit_cast<float>(bits);
          std::uint16_t half = 0;
          std::memcpy(&half, elements.data() + 2 * i, 2);
          element = bfloat16_to_float(half);
        } else {
          std::memcpy(&element, elements.data() + 4 * i, 4);
        }
        wanted[i] = static_cast<double>(value);
        right = right && element == static_cast<float>(factor) * value;
      }
      const std::size_t size = precision == Precision::bfloat16 ? 2 : 4;
      for (std::size_t i = static_cast<std::size_t>(d) * size; i < width * size; ++i) {
        right = right && elements[i] == std::byte{0};
      }
      expect("elements", right, metric, d);
      expect("rounded row", same(rounded, wanted), metric, d);
      look(elements.data(), static_cast<std::int64_t>(elements.size()));
      measure(rounded);
    }
  }
  const Span span = kPackLoops.span(row.data(), d);
  Span plain;
  for (const double x : row) {
    plain.largest = std::fmax(plain.largest, std::fabs(x)), plain.whole = plain.whole && x == std::nearbyint(x);
    plain.lowest = std::fmin(plain.lowest, x), plain.highest = std::fmax(plain.highest, x);
  }
  expect("span",
         span.largest == plain.largest && span.whole == plain.whole && span.lowest == plain.lowest &&
             span.highest == plain.highest,
         metric, d);
  for (const int offset : {0, 64, 128}) {
    for (const double step : {1.0, span.largest / 127 + 0x1p-100, span.largest / 50 + 0x1p-100}) {
      const double limit = offset == 64 ? 63 : 127;
      std::vector<std::byte> elements(width, std::byte{255});
      Row rounded(width, nan), wanted(width, 0.0);
      const std::int32_t sum =
          kPackLoops.round_int8(row.data(), d, step, limit, offset, elements.data(), rounded.data());
      std::int32_t plain_sum = 0;
      bool right = true;
      for (std::size_t i = 0; i < width; ++i) {
        const double steps = std::fmin(std::fmax(std::nearbyint(row[i] * (1 / step)), -limit - 1), limit);
        const bool here = i < static_cast<std::size_t>(d);
        wanted[i] = steps * step, plain_sum += static_cast<int>(steps);
        right = right && elements[i] == static_cast<std::byte>(here ? static_cast<int>(steps) + offset : 0);
      }
      expect("bytes", right && sum == plain_sum, metric, d);
      expect("row rounded to steps", same(rounded, wanted), metric, d);
      look(elements.data(), static_cast<std::int64_t>(elements.size()));
      if (!is_elementwise(metric)) measure(rounded);
    }
  }
}

template <class T>
void check_row(Dtype dtype, Metric metric, std::int64_t d, int kind) {
  const auto size = static_cast<std::size_t>(d);
  std::vector<T> stored(3 * size);  // the row in between: neither aligned nor at an end
  for (T& value : stored) {
    const double x = metric == Metric::chi2 ? std::fabs(draw(kind)) : draw(kind);
    if constexpr (std::is_same_v<T, Bfloat16>) value = T(std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16);
    else if constexpr (std::is_same_v<T, Float16>) value = T(draws() & 0xbbff);  // no infinity
    else if constexpr (sizeof(T) == 1) value = static_cast<T>(draws());
    else value = static_cast<T>(x);
    if (sizeof(T) == 2 && !std::isfinite(to_value<double>(value))) value = T{};
  }
  std::vector<double> centre(size, 0.0);
  if (is_product(metric) || is_euclidean(metric))
    for (double& c : centre) c = draw(kind % 4);
  const Form form(metric, is_angular(metric) ? 1.0 : 0x1p-4, centre);
  const RowsView rows{.data = stored.data(), .n = 3, .d = d, .dtype = dtype};
  for (const std::int64_t i : {1, 2}) {
    Row row(static_cast<std::size_t>(padded(d)), 7.0), wanted(size);
    for (std::size_t c = 0; c < size; ++c) wanted[c] = to_value<double>(stored[static_cast<std::size_t>(i) * size + c]);
    wanted = plain_form(form, std::move(wanted));
    const RowTerms terms = kPackLoops.read(form, rows, i, row.data());
    long double square = 0, product = 0, products = 0;
    for (std::size_t c = 0; c < size; ++c) {
      const long double x = wanted[c], by = static_cast<long double>(form.centre[c]) * form.scale * x;
      square += x * x;
      if (is_product(metric)) product += by, products += std::fabs(by);
    }
    look(row.data(), d), look(&terms.square, 1), look(&terms.centre, 1);
    expect("form row", same(row, wanted), metric, d);
    if (is_beyond(form, terms)) {
      expect("square of a row beyond", !(square < 0.999e24L), metric, d);
      continue;
    }
    expect("square", near(terms.square, square, square, d), metric, d);
    expect("product with the centre", near(terms.centre, product, products, d), metric, d);
    wanted.resize(row.size(), 0.0);
    expect("zeros behind the row", same(row, wanted), metric, d);
    check_rounding(metric, row, d);
  }
}

// What the screens assume of a term (docs/exactness.md, "Elementwise forms"), for elements of at most `largest`.
template <class TERM>
void check_bounds() {
  using One = Vec<double, kRegisterLanes<double>>;
  const double slack = 1 + 0x1p-40;
  for (int i = 0; i < 20000; ++i) {
    double numbers[3];
    for (double& x : numbers) {
      x = std::fmax(-TERM::largest, std::fmin(TERM::largest, draw(i % 3) * (i % 5 == 0 ? 4 : 1)));
      if (TERM::metric == Metric::chi2) x = std::fabs(x);
    }
    if (i % 2 == 0) numbers[2] = numbers[1] * (1 + draw(0) * 0x1p-20);
    if (std::fabs(numbers[2]) > TERM::largest) numbers[2] = numbers[1];
    const One q = numbers[0], x = numbers[1], y = numbers[2];
    const double near = TERM::term(q, x)[0], other = TERM::term(q, y)[0], difference = TERM::difference(x, y)[0];
    const double size = TERM::size(x)[0], allowed = TERM::stretch * difference * slack;
    expect("term", near <= (TERM::size(q)[0] + size) * slack, TERM::metric, 1);
    expect("difference of terms", std::fabs(near - other) <= allowed + 0x1p-40 * near, TERM::metric, 1);
    expect("difference of sizes", TERM::size(y)[0] - size <= allowed, TERM::metric, 1);
  }
}

}  // namespace

// A bound that is no number bounds nothing.
void check_stretch() {
  for (int lost = 0; lost < 6; ++lost) {
    double values[6] = {0.5, 0, 0, 0.5, 0, 0};  // V of shape (3, 2)
    expect("stretch", Directions(values, 3, 2).stretch() <= 1, Metric::euclidean, 3);
    values[lost] = std::nan("");
    expect("stretch of NaN", Directions(values, 3, 2).stretch() > 1, Metric::euclidean, 3);
  }
}

int main() {
  check_stretch();
  for (int number = 0; number < kMetrics; ++number) {
    const auto metric = static_cast<Metric>(number);
    if (is_elementwise(metric)) with_term(metric, [](auto term) { check_bounds<decltype(term)>(); });
    for (const std::int64_t d : {1, 7, 8, 15, 16, 17, 31, 32, 33, 127, 128, 129, 300}) {
      for (int kind = 0; kind < kKinds; ++kind) {
        for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::u8, Dtype::i8, Dtype::f16, Dtype::bf16}) {
          if (dtype != Dtype::f32 && dtype != Dtype::f64 && kind != 2) continue;  // theirs are of one kind
          with_type(dtype, [&](auto zero) { check_row<decltype(zero)>(dtype, metric, d, kind); });
        }
      }
    }
  }
  if (failures == 0) std::printf("bits %016llx\n", static_cast<unsigned long long>(seen));
  return failures > 0;
}
