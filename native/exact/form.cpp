#include "exact/form.hpp"

#include <cmath>
#include <limits>

namespace tonari {
namespace {

// The product of two rows with at least this squared norm loses less than 2^-100 of itself to underflow.
constexpr double kSmallestSquare = 0x1p-960;

}  // namespace

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

void to_form(const Form& form, double* row) {
  const std::int64_t d = form.d;
  if (is_angular(form.metric)) {
    if (removes_mean(form.metric)) remove_mean(row, d);
    std::vector<double> squares(static_cast<std::size_t>(d));
    for (std::int64_t i = 0; i < d; ++i) squares[static_cast<std::size_t>(i)] = row[i] * row[i];
    const double square = lane_sum(squares.data(), d);
    const double norm = std::sqrt(square);
    if (square != 0 && square < kSmallestSquare) {  // its products underflow: only exact values may judge it
      for (std::int64_t i = 0; i < d; ++i) row[i] = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    for (std::int64_t i = 0; i < d; ++i) row[i] = norm == 0 ? 0.0 : row[i] / norm;
  } else if (is_elementwise(form.metric)) {
    const bool relative = is_scale_free(form.metric);  // then underflow may take a large part of the value
    for (std::int64_t i = 0; i < d; ++i) {
      const double scaled = row[i] * form.scale;
      const bool lost = relative && row[i] != 0 && std::fabs(scaled) < std::numeric_limits<double>::min();
      row[i] = lost ? std::numeric_limits<double>::quiet_NaN() : scaled;
    }
  } else {
    for (std::int64_t i = 0; i < d; ++i) row[i] = (row[i] - form.centre[static_cast<std::size_t>(i)]) * form.scale;
  }
}

double point_term(const Form& form, const double* row) {
  double sum = 0;
  if (is_euclidean(form.metric)) {
    for (std::int64_t i = 0; i < form.d; ++i) sum += row[i] * row[i];
  } else if (is_product(form.metric)) {
    for (std::int64_t i = 0; i < form.d; ++i) sum -= 2 * form.scale * form.centre[static_cast<std::size_t>(i)] * row[i];
  }
  return sum;
}

double query_term(const Form& form, const double* row, double square) {
  if (is_euclidean(form.metric)) return square;
  double sum = 0;
  if (is_product(form.metric)) {
    for (std::int64_t i = 0; i < form.d; ++i) {
      const double centre = form.scale * form.centre[static_cast<std::size_t>(i)];
      sum += centre * (row[i] + centre);
    }
  }
  return sum;
}

}  // namespace tonari
