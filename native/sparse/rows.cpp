#include "sparse/rows.hpp"

#include <algorithm>
#include <cmath>

#include "bits/value.hpp"

namespace tonari {
namespace {

class Lanes {
 public:
  void add(std::int32_t column, double term) { lanes_[column % kLanes] += term; }
  double sum() {
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) lanes_[lane] += lanes_[lane + half];
    }
    return lanes_[0];
  }

 private:
  double lanes_[kLanes] = {};
};

// Calls term(column, q, x) in ascending order of columns: for each column in which one of the rows is not 0, or with
// `shared`, both.
template <bool shared, class Term>
void for_columns(const SparseRows& queries, std::int64_t query, const SparseRows& points, std::int64_t point,
                 Term&& term) {
  std::int64_t i = queries.indptr[query], j = points.indptr[point];
  const std::int64_t last_i = queries.indptr[query + 1], last_j = points.indptr[point + 1];
  while (i < last_i && j < last_j) {
    const std::int32_t left = queries.columns[i], right = points.columns[j];
    if (left == right) {
      term(left, queries.at(i++), points.at(j++));
    } else if (left < right) {
      if constexpr (!shared) term(left, queries.at(i), 0.0);
      ++i;
    } else {
      if constexpr (!shared) term(right, 0.0, points.at(j));
      ++j;
    }
  }
  if constexpr (!shared) {
    for (; i < last_i; ++i) term(queries.columns[i], queries.at(i), 0.0);
    for (; j < last_j; ++j) term(points.columns[j], 0.0, points.at(j));
  }
}

}  // namespace

double sparse_square(const SparseRows& rows, std::int64_t row) {
  Lanes lanes;
  for (std::int64_t i = rows.indptr[row]; i < rows.indptr[row + 1]; ++i) {
    lanes.add(rows.columns[i], rows.at(i) * rows.at(i));
  }
  return lanes.sum();
}

float sparse_jaccard(const SparseRows& queries, std::int64_t query, const SparseRows& points, std::int64_t point) {
  std::int64_t shared = 0;
  for_columns<true>(queries, query, points, point, [&](std::int32_t, double, double) { ++shared; });
  const std::int64_t together = queries.entries(query) + points.entries(point);
  return jaccard_value(together - 2 * shared, together - shared);
}

double sparse_value(Metric metric, const SparseRows& queries, std::int64_t query, double query_square,
                    const SparseRows& points, std::int64_t point, double point_square) {
  Lanes lanes;
  if (is_euclidean(metric)) {
    for_columns<false>(queries, query, points, point,
                       [&](std::int32_t column, double q, double x) { lanes.add(column, (q - x) * (q - x)); });
    const double square = lanes.sum();
    return takes_root(metric) ? std::sqrt(square) : square;
  }
  if (is_angular(metric) && (query_square == 0 || point_square == 0)) return 1;
  for_columns<true>(queries, query, points, point,
                    [&](std::int32_t column, double q, double x) { lanes.add(column, q * x); });
  const double dot = lanes.sum();
  if (is_descending(metric)) return dot;
  const double query_norm = std::sqrt(query_square), point_norm = std::sqrt(point_square);
  const double cosine = dot / (query_norm * point_norm);
  if (!(cosine > 0.5)) return std::min(1.0 - cosine, 2.0);
  const double query_inverse = 1.0 / query_norm, point_inverse = 1.0 / point_norm;
  Lanes chords;
  for_columns<false>(queries, query, points, point, [&](std::int32_t column, double q, double x) {
    const double difference = q * query_inverse - x * point_inverse;
    chords.add(column, difference * difference);
  });
  const double chord = chords.sum(), shortest = static_cast<double>(queries.d + 192) * 0x1p-57;
  return chord <= shortest * shortest ? 0.0 : std::min(chord / 2.0, 0.5);
}

}  // namespace tonari
