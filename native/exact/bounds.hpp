// Converts bounds on scores to bounds on returned values and back, so that the certificate allows for output rounding.
//
// Points are ordered by the returned value (rounded to float32 or float64), so a threshold must let through everything
// that rounds to the k-th returned value or below. docs/exactness.md derives each line.
#pragma once

#include "exact/form.hpp"

namespace tonari {

// Rounds an exact value to the output type; -0 becomes 0.
inline double returned_value(double value, bool double_output) {
  return (double_output ? value : static_cast<double>(static_cast<float>(value))) + 0.0;
}

class Bounds {
 public:
  Bounds(const Form& form, bool double_output) : form_(form), double_output_(double_output) {}

  // The threshold for a returned value: no point whose returned value is at least as near as `value` has a larger
  // score. `value` may be any real bound on a returned value; `shift` is the query's query_term.
  float threshold_from_value(double value, double shift) const;

  // The same threshold, from an upper bound on the k-th smallest score.
  float threshold_from_score(double score, double shift) const;

  // The converse, a score s: every point with a score of at most s has a returned value at least as near as `value`;
  // -infinity if no such score is known. This holds for points within the screen's range; the upper bounds of all other
  // points are larger than s.
  float score_within(double value, double shift) const;

  double returned(double value) const { return returned_value(value, double_output_); }

  // The ascending sort key of a point: the returned value, or its negative for the inner product.
  double key(double returned_value) const { return is_descending(form_.metric) ? -returned_value : returned_value; }

 private:
  const Form& form_;
  bool double_output_;
};

}  // namespace tonari
