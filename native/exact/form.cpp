#include "exact/form.hpp"

#include <utility>

namespace tonari {

Form::Form(Metric of, double by, std::vector<double> around)
    : metric(of), d(std::ssize(around)), scale(by), centre(std::move(around)) {
  if (is_product(metric)) {
    for (const double c : centre) centre_square += c * c * scale * scale;
  }
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
  constexpr std::int64_t longest = std::int64_t{1} << 22;  // beyond, a float32 sum of d terms has no useful bound
  constexpr double usable = 1e24;  // scores of all rows with less are below 3e24, far less than kHuge
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
