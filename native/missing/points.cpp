#include "missing/points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/at_least.hpp"
#include "core/rows.hpp"

namespace tonari {
namespace {

constexpr int kMostExponent = 1000;      // so that a scale and its inverse are normal numbers
constexpr double kUnit = 0x1p-24;        // the largest relative error of a rounding to float32
constexpr double kMargin = 1 + 0x1p-10;  // covers the roundings of the centred numbers and of their length
constexpr double kSmallest = 0x1p-148;   // at least the error of a number that underflows

}  // namespace

MissingForm::MissingForm(const RowsView& points) : centre(static_cast<std::size_t>(points.d)) {
  const auto d = static_cast<std::size_t>(points.d);
  std::vector<double> row(d), counts(d);
  for (std::int64_t i = 0; i < points.n; ++i) {
    load_row(points, i, row.data());
    for (std::size_t c = 0; c < d; ++c) {
      const bool there = !std::isnan(row[c]);
      centre[c] += there ? row[c] : 0.0;
      counts[c] += there ? 1.0 : 0.0;
    }
  }
  for (std::size_t c = 0; c < d; ++c) centre[c] /= std::max(counts[c], 1.0);
  // The median, because a few far points must not make the numbers of all others too small for float32.
  std::vector<std::int32_t> exponents;
  exponents.reserve(static_cast<std::size_t>(points.n));
  for (std::int64_t i = 0; i < points.n; ++i) {
    load_row(points, i, row.data());
    double largest = 0;
    for (std::size_t c = 0; c < d; ++c) {
      const double size = std::fabs(row[c] - centre[c]);
      largest = size > largest ? size : largest;
    }
    if (largest > 0) exponents.push_back(std::ilogb(largest) + 1);
  }
  if (exponents.empty()) return;
  const auto middle = exponents.begin() + std::ssize(exponents) / 2;
  std::nth_element(exponents.begin(), middle, exponents.end());
  scale = std::ldexp(1.0, std::clamp(-*middle, -kMostExponent, kMostExponent));
}

float MissingForm::transform(const double* row, float* out) const {
  double square = 0;
  for (std::size_t c = 0; c < centre.size(); ++c) {
    out[c] = static_cast<float>((row[c] - centre[c]) * scale);
    square += std::isnan(out[c]) ? 0.0 : static_cast<double>(out[c]) * out[c];
  }
  return at_least(std::sqrt(square) * (kUnit * kMargin) + std::sqrt(static_cast<double>(centre.size())) * kSmallest);
}

MissingPoints::MissingPoints(const RowsView& points)
    : rows(points), form(points), errors(static_cast<std::size_t>(missing_groups(points.n))) {
  const std::int64_t d = points.d, words = missing_words(d), groups = missing_groups(points.n);
  values.assign(static_cast<std::size_t>(groups * d * kMissingGroup), std::numeric_limits<float>::quiet_NaN());
  present.assign(static_cast<std::size_t>(groups * words * kMissingGroup), 0);
  float* const packed = values.data();
  std::uint64_t* const bits = present.data();
  std::vector<double> row(static_cast<std::size_t>(d));
  std::vector<float> moved(static_cast<std::size_t>(d));
  for (std::int64_t i = 0; i < points.n; ++i) {
    const std::int64_t group = i / kMissingGroup, place = i % kMissingGroup;
    load_row(points, i, row.data());
    float& error = errors[static_cast<std::size_t>(group)];
    error = std::max(error, form.transform(row.data(), moved.data()));
    for (std::int64_t c = 0; c < d; ++c) {
      packed[(group * d + c) * kMissingGroup + place] = moved[static_cast<std::size_t>(c)];
      if (std::isnan(row[static_cast<std::size_t>(c)])) continue;
      bits[(group * words + c / 64) * kMissingGroup + place] |= std::uint64_t{1} << (c % 64);
    }
  }
}

std::int64_t MissingPoints::bytes() const {
  const auto of = [](const auto& all) { return static_cast<std::int64_t>(all.capacity() * sizeof(all[0])); };
  return of(values) + of(present) + of(errors) + of(form.centre);
}

}  // namespace tonari
