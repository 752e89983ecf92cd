#include "exact/bounds.hpp"

#include <cfloat>
#include <cmath>
#include <limits>

namespace tonari {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSlack = 0x1p-50;  // covers the few roundings of the conversions below in float64

float round_up(double x) {
  if (!(x < static_cast<double>(FLT_MAX))) return std::numeric_limits<float>::infinity();
  float rounded = static_cast<float>(x);
  if (static_cast<double>(rounded) < x) rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
  return rounded;
}

float round_down(double x) { return -round_up(-x); }

}  // namespace

float Bounds::threshold_from_value(double value, double shift) const {
  // Rounding to the output type moves a value by half a unit; two values that round to the same one differ by at most a
  // unit. Evaluation in float64 adds an error of (d + 16) units of float64, which is absolute if terms cancel (1 -
  // cosine).
  const double evaluation = static_cast<double>(form_.d + 16) * 0x1p-51;
  const double relative = (double_output_ ? 0.0 : 0x1p-22) + evaluation;
  // Each term may lose an amount that is below float64's range.
  const double underflow = static_cast<double>(form_.d + 16) * underflow_of(form_.metric);
  const double smallest = (double_output_ ? 0x1p-1070 : 0x1p-148) + underflow;
  const double slack = std::fabs(value) * relative + smallest + (is_angular(form_.metric) ? evaluation : 0.0);
  const double worst = is_descending(form_.metric) ? value - slack : value + slack;
  if (!double_output_ && !(std::fabs(worst) < static_cast<double>(FLT_MAX))) return round_up(kInfinity);
  const double scale = form_.scale;
  double score = 0, size = 0;
  switch (family_of(form_.metric)) {
    case Family::squares:
      score = takes_root(form_.metric) ? (worst * scale) * (worst * scale) + underflow * scale * scale
                                       : worst * scale * scale;
      size = score + shift;
      score -= shift;
      break;
    case Family::products:
      size = 2 * std::fabs(shift) + 2 * std::fabs(worst) * scale * scale;
      score = 2 * shift - 2 * worst * scale * scale;
      break;
    case Family::angles:
      if (worst >= 2) return round_up(kInfinity);
      size = 2;
      score = 2 * (worst - 1);
      break;
    case Family::terms: size = score = worst * form_.unit;
  }
  // Points beyond the screen's range have the lowest possible score: no threshold may fall below it.
  return std::fmax(round_up(score + size * (kSlack + evaluation)), -kHuge);
}

float Bounds::threshold_from_score(double score, double shift) const {
  if (!(score < kInfinity)) return round_up(kInfinity);
  const double scale = form_.scale;
  switch (family_of(form_.metric)) {
    case Family::squares: {
      const double square = std::fmax(0.0, score + shift + (std::fabs(score) + shift) * kSlack) / scale / scale;
      return threshold_from_value(takes_root(form_.metric) ? std::sqrt(square) * (1 + kSlack) : square, shift);
    }
    case Family::products:
      return threshold_from_value((shift - score / 2 - (std::fabs(shift) + std::fabs(score)) * kSlack) / scale / scale,
                                  shift);
    case Family::angles: return threshold_from_value(std::fmax(0.0, 1 + score / 2 + kSlack), shift);
    case Family::terms: break;
  }
  return threshold_from_value(std::fmax(0.0, score / form_.unit * (1 + kSlack)), shift);
}

float Bounds::score_within(double value, double shift) const {
  // As in threshold_from_value, but the errors are subtracted. Rounding to the output type needs no allowance: `value`
  // is a number of that type, so a number of at most `value` is rounded to at most `value`.
  const double evaluation = static_cast<double>(form_.d + 16) * 0x1p-51;
  const double underflow = static_cast<double>(form_.d + 16) * underflow_of(form_.metric);
  const double slack =
      std::fabs(value) * evaluation + 0x1p-1070 + underflow + (is_angular(form_.metric) ? evaluation : 0.0);
  const double best = is_descending(form_.metric) ? value + slack : value - slack;
  if (!std::isfinite(best) || (!is_descending(form_.metric) && best < 0)) return -round_up(kInfinity);
  const double scale = form_.scale;
  double score = 0, size = 0;
  switch (family_of(form_.metric)) {
    case Family::squares:
      score =
          takes_root(form_.metric) ? (best * scale) * (best * scale) - underflow * scale * scale : best * scale * scale;
      size = std::fabs(score) + shift;
      score -= shift;
      break;
    case Family::products:
      size = 2 * std::fabs(shift) + 2 * std::fabs(best) * scale * scale;
      score = 2 * shift - 2 * best * scale * scale;
      break;
    case Family::angles:
      size = 2;
      score = 2 * (best - 1);
      break;
    case Family::terms: size = score = best * form_.unit;
  }
  const double bound = score - size * (kSlack + evaluation);
  if (std::isnan(bound)) return -round_up(kInfinity);
  // The upper bound of a point beyond the screen's range is kHuge, which does not depend on the point.
  return std::fmin(round_down(bound), kHuge / 8);
}

}  // namespace tonari
