// The steps of a cut: choosing its dimension, finding its value, and moving the rows that go left to the front.
#pragma once

#include <algorithm>

#include "core/row_values.hpp"

namespace tonari {

// Whether T represents all values of a stored type; bind_kdtree_build.cpp refuses other rows.
template <class T, class Stored>
constexpr bool kHolds = !std::is_same_v<Stored, double> || std::is_same_v<T, double>;

// Rows of a stored type, whose elements are read as T.
template <class Stored, class T>
struct CutSource {
  const Stored* data;
  std::int64_t d;
  T at(std::int64_t row, std::int64_t column) const { return to_value<T>(data[row * d + column]); }
};

// The variance, times count, of columns [column, column + width) over `rows`. Differences from the first row are summed
// in the order of the rows, so that reference.py gets the same bits; the sums stay in registers.
template <int width, class Stored>
void column_variances(const Stored* data, std::int64_t d, const std::int64_t* rows, std::int64_t count,
                      std::int64_t column, double* variances) {
  double first[width], sum[width] = {}, square[width] = {};
  for (int j = 0; j < width; ++j) first[j] = to_value<double>(data[rows[0] * d + column + j]);
  for (std::int64_t i = 0; i < count; ++i) {
    const Stored* row = data + rows[i] * d + column;
    for (int j = 0; j < width; ++j) {
      const double shifted = to_value<double>(row[j]) - first[j];
      sum[j] += shifted;
      square[j] += shifted * shifted;
    }
  }
  for (int j = 0; j < width; ++j) variances[j] = square[j] - sum[j] * sum[j] / static_cast<double>(count);
}

// The dimension of the largest variance over `rows`; of equal ones, the first. Columns are handled by twos or threes:
// for few columns this is as fast as all at once, and needs no code for each number of columns.
template <class Stored>
std::int32_t most_varied_dimension(const Stored* data, std::int64_t d, const std::int64_t* rows, std::int64_t count) {
  constexpr int most = 8;
  std::int64_t best = 0;
  double largest = 0;
  for (std::int64_t column = 0, width = 0; count > 0 && column < d; column += width) {
    double variances[most];
    const std::int64_t left = d - column;
    width = left >= most ? most : left == 3 || left == 5 ? 3 : left == 1 ? 1 : 2;
    switch (width) {
      case 1: column_variances<1>(data, d, rows, count, column, variances); break;
      case 2: column_variances<2>(data, d, rows, count, column, variances); break;
      case 3: column_variances<3>(data, d, rows, count, column, variances); break;
      default: column_variances<most>(data, d, rows, count, column, variances);
    }
    for (std::int64_t j = 0; j < width; ++j) {
      if (column + j == 0 || variances[j] > largest) {
        largest = variances[j];
        best = column + j;
      }
    }
  }
  return static_cast<std::int32_t>(best);
}

// The value of rank `rank` (0 is the smallest). `first` and `second` (count + 1 each) are overwritten.
//
// The selection of Floyd and Rivest (1975): two values of a small sample, slightly below and slightly above that rank,
// leave few candidates after one pass, which does not branch on the data. It takes about a third of nth_element's time.
template <class T>
T value_of_rank(const T* values, std::int64_t count, std::int64_t rank, T* first, T* second) {
  constexpr std::int64_t few = 64, sampled = 16, reach = 4;  // reach: two standard deviations of the sample's median
  while (count > few) {
    T sample[sampled];
    for (std::int64_t i = 0; i < sampled; ++i) sample[i] = values[i * count / sampled];
    std::sort(sample, sample + sampled);
    const std::int64_t expected = rank * sampled / count;
    const T lower = sample[std::max(expected - reach, std::int64_t{0})];
    const T upper = sample[std::min(expected + reach, sampled - 1)];
    std::int64_t below = 0, kept = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = values[i];
      first[kept] = value;
      kept += (value >= lower) & (value <= upper);
      below += value < lower;
    }
    if (rank < below || rank >= below + kept || kept > count / 4 * 3) break;  // misleading sample, or too many ties
    rank -= below;
    count = kept;
    values = first;
    std::swap(first, second);
  }
  if (values != second) std::copy(values, values + count, second);
  std::nth_element(second, second + rank, second + count);
  return second[rank];
}

// Moves the rows of `order` whose key is less than `value`, and the first `equal` of those whose key equals it, to the
// front. Both sides keep their order. `spare` has room for one row more than the right side.
template <class T, class Index>
void part_rows(Index* order, const T* keys, std::int64_t count, T value, std::int64_t equal, Index* spare) {
  std::int64_t left = 0, right = 0;
  if (equal == 0) {
    for (std::int64_t i = 0; i < count; ++i) {
      const bool goes_left = keys[i] < value;
      const Index row = order[i];
      order[left] = row;
      spare[right] = row;
      left += goes_left;
      right += !goes_left;
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      const bool tied = keys[i] == value && equal > 0;
      const bool goes_left = tied || keys[i] < value;
      const Index row = order[i];
      order[left] = row;
      spare[right] = row;
      equal -= tied;
      left += goes_left;
      right += !goes_left;
    }
  }
  std::copy(spare, spare + right, order + left);
}

}  // namespace tonari
