#include "sparse/points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tonari {

float at_least(double number) {
  const auto near = static_cast<float>(number);
  return static_cast<double>(near) >= number ? near : std::nextafter(near, std::numeric_limits<float>::infinity());
}

namespace {

// A relative margin above the roundings of the norms, which are sums of at most 2^31 squares in float64.
constexpr double kMargin = 1 + 0x1p-20;

std::int64_t ranks_with(const std::vector<std::int64_t>& counts, std::int64_t n, std::int64_t share) {
  return std::partition_point(counts.begin(), counts.end(), [&](std::int64_t count) { return count * share >= n; }) -
         counts.begin();
}

}  // namespace

SparsePoints::SparsePoints(SparseMetric of_metric, const SparseRows& of_rows, const std::int32_t* ranks,
                           std::int64_t ranked)
    : metric(of_metric), rows(of_rows), counts(static_cast<std::size_t>(ranked)) {
  const std::int64_t n = rows.n, entries = rows.indptr[n], blocks = sparse_blocks(n);
  for (std::int64_t i = 0; i < entries; ++i) ++counts[static_cast<std::size_t>(ranks[i])];
  bound[0] = ranks_with(counts, n, kDenseShare);
  bound[1] = ranks_with(counts, n, kFrequentShare);
  bound[2] = ranks_with(counts, n, kRareShare);

  const auto size = static_cast<std::size_t>(n);
  squares.resize(size);
  double largest = 0;
  for (std::int64_t row = 0; row < n; ++row) {
    squares[static_cast<std::size_t>(row)] = sparse_square(rows, row);
    most_entries = std::max(most_entries, rows.indptr[row + 1] - rows.indptr[row]);
  }
  const bool cosine = metric == SparseMetric::cosine;
  if (!cosine) {
    for (const double square : squares) largest = std::max(largest, square);
    // The least power of two above the longest row. Squares that underflow make it too small to be screened.
    int exponent = 0;
    std::frexp(std::sqrt(largest) * kMargin, &exponent);
    scale = std::ldexp(1.0, exponent);
    screened = entries == 0 || (largest > 0 && scale >= kShortest);
  }

  for (auto& part : rest) part.resize(size);
  if (!cosine) reach.resize(size);
  if (has_squares()) half.resize(size);
  starts.assign(static_cast<std::size_t>(ranked - bound[0]) + 1, 0);
  for (std::size_t rank = static_cast<std::size_t>(bound[0]), r = 0; r + 1 < starts.size(); ++r, ++rank) {
    starts[r + 1] = starts[r] + counts[rank];
  }
  std::vector<std::int64_t> next(starts.begin(), starts.end() - 1);
  ids.resize(static_cast<std::size_t>(starts.back()));
  weights.resize(ids.size());
  heavy.assign(static_cast<std::size_t>(bound[0] * n), 0.0f);
  row_starts.assign(size + 1, 0);
  std::int64_t kept = 0;
  for (std::int64_t rank = 0; rank < bound[2]; ++rank) kept += counts[static_cast<std::size_t>(rank)];
  row_ranks.reserve(static_cast<std::size_t>(kept));
  row_weights.reserve(static_cast<std::size_t>(kept));

  std::vector<std::pair<std::int32_t, float>> frequent;
  for (std::int64_t row = 0; row < n; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const std::int64_t begin = row / kSparseBlock * kSparseBlock, length = std::min(kSparseBlock, n - begin);
    const double square = squares[at];
    const bool lost = cosine && square > 0 && square < kShortest * kShortest;  // it has no precise direction
    const double factor = cosine ? (square == 0 || lost ? 0.0 : 1.0 / std::sqrt(square)) : screened ? 1.0 / scale : 0.0;
    double whole = 0, parts[kSparseBounds] = {};
    frequent.clear();
    for (std::int64_t i = rows.indptr[row]; i < rows.indptr[row + 1]; ++i) {
      const auto weight = static_cast<float>(rows.at(i) * factor);
      const std::int64_t rank = ranks[i];
      const double term = static_cast<double>(weight) * weight;
      whole += term;
      for (int j = 0; j < kSparseBounds; ++j) {
        if (rank < bound[j]) parts[j] += term;
      }
      positive = positive && weight >= kLeastFactor;
      if (rank < bound[0]) {
        heavy[static_cast<std::size_t>(begin * bound[0] + rank * length + row - begin)] = weight;
      } else {
        const std::int64_t place = next[static_cast<std::size_t>(rank - bound[0])]++;
        ids[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(row);
        weights[static_cast<std::size_t>(place)] = weight;
      }
      if (rank < bound[2]) frequent.emplace_back(static_cast<std::int32_t>(rank), weight);
    }
    std::sort(frequent.begin(), frequent.end());
    for (const auto& [rank, weight] : frequent) {
      row_ranks.push_back(rank);
      row_weights.push_back(weight);
    }
    row_starts[at + 1] = static_cast<std::int64_t>(row_ranks.size());
    for (int j = 0; j < kSparseBounds; ++j) rest[j][at] = at_least(std::sqrt(parts[j]) * kMargin);
    if (!cosine) reach[at] = std::max(kLeastFactor, at_least(std::sqrt(whole) * kMargin));
    if (has_squares()) half[at] = static_cast<float>(whole / 2);
    if (lost) {
      if (reach.empty()) reach.assign(size, 1.0f);
      reach[at] = std::numeric_limits<float>::infinity();
    }
  }

  const std::int64_t marked = bound[2] - bound[0];
  marks.resize(static_cast<std::size_t>(marked * (blocks + 1)));
  for (std::int64_t r = 0; r < marked; ++r) {
    const std::int64_t last = starts[static_cast<std::size_t>(r) + 1];
    std::int64_t place = starts[static_cast<std::size_t>(r)];
    for (std::int64_t block = 0; block <= blocks; ++block) {
      while (place < last && ids[static_cast<std::size_t>(place)] < block * kSparseBlock) ++place;
      marks[static_cast<std::size_t>(r * (blocks + 1) + block)] = place;
    }
  }
}

std::int64_t SparsePoints::bytes() const {
  const auto of = [](const auto& all) { return static_cast<std::int64_t>(all.capacity() * sizeof(all[0])); };
  std::int64_t sum = of(squares) + of(half) + of(reach) + of(heavy) + of(counts) + of(starts) + of(ids) + of(weights) +
                     of(marks) + of(row_starts) + of(row_ranks) + of(row_weights);
  for (const auto& part : rest) sum += of(part);
  return sum;
}

}  // namespace tonari
