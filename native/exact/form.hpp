// The form in which rows are compared: it maps an original row to the float64 row from which the score is computed.
//
//   sqeuclidean, euclidean   x' = scale (x - centre)            score = |x'|^2 - 2 <q', x'>
//   inner_product            x' = scale (x - centre)            score = -2 scale <centre, x'> - 2 <q', x'>
//   cosine                   x' = x / |x|                       score = -2 <q', x'>
//   correlation              x' = (x - mean(x)) / |x - mean(x)| score = -2 <q', x'>
//   elementwise              x' = scale x                       score = sum or max of f(q'_i, x'_i)
//
// Every score ascends with the distance and differs from it only by terms that depend on the query alone.
//
// A form of the first four kinds may be contracted to `count` directions and one more column,
//
//   f(x) = (V^T x', t),   t = sqrt(|x'|^2 - |V^T x'|^2),   V of shape (d, count), V^T V <= I
//
// so that |f(x)| = |x'| and <q', x'> <= <f(q), f(x)>: the score of contracted rows is a lower bound of the score, with
// the same terms of the point and of the query (docs/exactness.md, "Contracted forms").
#pragma once

#include <vector>

#include "core/aligned_bytes.hpp"
#include "core/metrics.hpp"
#include "core/rows.hpp"

namespace tonari {

// Means "no bound": far above every score of packed rows and far below overflow, since an infinity times zero is NaN.
constexpr float kHuge = 1e30f;

// The number of columns of a row in memory: a multiple of kLanes; zeros follow the first d values.
constexpr std::int64_t padded(std::int64_t d) { return (d + kLanes - 1) / kLanes * kLanes; }

// A matrix of d rows lies in panels of kLanes columns, each of padded(d) rows with zeros behind the first d, so that a
// product reads memory in order. This is the place of the element in row i and column a.
constexpr std::int64_t panel_place(std::int64_t d, std::int64_t i, std::int64_t a) {
  return (a / kLanes * padded(d) + i) * kLanes + a % kLanes;
}

// The matrix V in panels, with zeros behind the first `count` columns; no directions: no contraction.
struct Directions {
  std::int64_t count = 0, d = 0;
  AlignedVector<double> panels;

  Directions() = default;
  // `values`: V of shape (d, count), by rows.
  Directions(const double* values, std::int64_t d, std::int64_t count);

  // The first `count` directions: if V^T V <= I, the same holds for them.
  Directions first(std::int64_t count) const;
  // An upper bound on the largest eigenvalue of V^T V.
  double stretch() const;
};

struct Form {
  Metric metric;
  std::int64_t d;
  double scale;                // a power of two, so that it rounds nothing
  std::vector<double> centre;  // padded(d) values
  double unit = 1;             // scale^degree of an elementwise metric, a power of two: a value times this is a score
  double centre_square = 0;    // |scale centre|^2, for the inner product; 0 for all other forms
  Directions directions;

  // The scale of an elementwise metric is such that `unit` is a power of two.
  Form(Metric metric, double scale, std::vector<double> centre, Directions directions = {});

  bool contracts() const { return directions.count > 0; }
  // The number of columns of the rows that the screen compares.
  std::int64_t columns() const { return contracts() ? directions.count + 1 : d; }
};

// The sum of d values in the defined order: by lanes i % 16, which are then added in halves (docs/exactness.md, "The
// value").
double lane_sum(const double* values, std::int64_t d);

// Subtracts the row's mean; a constant row becomes zeros.
void remove_mean(double* row, std::int64_t d);

// Sums over a form row.
struct RowTerms {
  double square = 0;  // |x'|^2; NaN where the form cannot represent the row
  double centre = 0;  // scale <centre, x'> for the inner product, else 0
  double error = 0;   // |f(x) - the row that was computed for it|; 0 without a contraction
};

// Whether a form row is too large for the screen, or could not be converted to the form at all.
bool is_beyond(const Form& form, const RowTerms& row);

// The part of the score that depends on the point alone.
double point_term(const Form& form, const RowTerms& row);

// The part of a value that the score omits because it depends on the query alone: |q'|^2 for euclidean forms,
// scale <q', centre> + scale^2 |centre|^2 for the inner product, else 0.
double query_term(const Form& form, const RowTerms& row);

}  // namespace tonari
