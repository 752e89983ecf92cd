#include "exact/form.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tonari {

Directions::Directions(const double* values, std::int64_t rows, std::int64_t of)
    : count(of), d(rows), panels(static_cast<std::size_t>(padded(rows) * padded(of)), 0.0) {
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t a = 0; a < count; ++a) {
      panels[static_cast<std::size_t>(panel_place(d, i, a))] = values[i * count + a];
    }
  }
}

Directions Directions::first(std::int64_t of) const {
  Directions made;
  made.count = of, made.d = d;
  made.panels.assign(panels.begin(), panels.begin() + padded(d) * padded(of));
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t a = of; a < padded(of); ++a) made.panels[static_cast<std::size_t>(panel_place(d, i, a))] = 0;
  }
  return made;
}

double Directions::stretch() const {
  const std::int64_t width = padded(count);
  std::vector<double> products(static_cast<std::size_t>(width * width), 0.0);  // V^T V
  std::vector<double> row(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t a = 0; a < width; a += kLanes) {
      std::copy_n(panels.data() + panel_place(d, i, a), kLanes, row.data() + a);
    }
    for (std::int64_t a = 0; a < count; ++a) {
      double* sums = products.data() + a * width;
      const double value = row[static_cast<std::size_t>(a)];
      for (std::int64_t b = 0; b < width; ++b) sums[b] += value * row[static_cast<std::size_t>(b)];
    }
  }
  // The largest sum of magnitudes in a row, plus more than its rounding error; no eigenvalue exceeds it.
  double largest = 0, longest = 0;
  for (std::int64_t a = 0; a < count; ++a) {
    double sum = 0;
    for (std::int64_t b = 0; b < count; ++b) sum += std::fabs(products[static_cast<std::size_t>(a * width + b)]);
    // explicitly, since std::max ignores a NaN
    if (!std::isfinite(sum)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, sum);
    longest = std::max(longest, products[static_cast<std::size_t>(a * (width + 1))]);
  }
  return largest + static_cast<double>(d + width) * 0x1p-52 * static_cast<double>(count) * longest;
}

Form::Form(Metric of, double by, std::vector<double> around, Directions along)
    : metric(of), d(std::ssize(around)), scale(by), centre(std::move(around)), directions(std::move(along)) {
  if (is_product(metric)) {
    for (const double c : centre) centre_square += c * c * scale * scale;
  }
  if (is_elementwise(metric)) unit = std::ldexp(1.0, static_cast<int>(degree_of(metric) * std::ilogb(scale)));
  centre.resize(static_cast<std::size_t>(padded(d)), 0.0);
}

double lane_sum(const double* values, std::int64_t d) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] += values[i + j];
  }
  for (int j = 0; i + j < d; ++j) lanes[j] += values[i + j];
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

void remove_mean(double* row, std::int64_t d) {
  double least = row[0], most = row[0];
  for (std::int64_t i = 1; i < d; ++i) {
    least = row[i] < least ? row[i] : least;
    most = row[i] > most ? row[i] : most;
  }
  const double mean = lane_sum(row, d) / static_cast<double>(d);
  const bool constant = least == most;
  for (std::int64_t i = 0; i < d; ++i) row[i] = constant ? 0.0 : row[i] - mean;
}

bool is_beyond(const Form& form, const RowTerms& row) {
  // with more columns, a float32 sum of d terms has no useful bound
  constexpr std::int64_t longest = std::int64_t{1} << 22;
  constexpr double usable = 1e24;  // scores of rows with smaller squares are below 3e24, far less than kHuge
  return form.d > longest || !(row.square < usable);  // true for NaN, too
}

double point_term(const Form& form, const RowTerms& row) {
  if (is_euclidean(form.metric)) return row.square;
  return is_product(form.metric) ? -2 * row.centre : 0;
}

double query_term(const Form& form, const RowTerms& row) {
  if (is_euclidean(form.metric)) return row.square;
  return is_product(form.metric) ? row.centre + form.centre_square : 0;
}

}  // namespace tonari
