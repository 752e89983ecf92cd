#include "sparse/points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace tonari {

namespace {

// A relative margin that covers the roundings of the norms, which are sums of at most 2^31 squares in float64.
constexpr double kMargin = 1 + 0x1p-20;

std::int64_t ranks_with(const std::vector<std::int64_t>& counts, std::int64_t n, std::int64_t share) {
  return std::partition_point(counts.begin(), counts.end(), [&](std::int64_t count) { return count * share >= n; }) -
         counts.begin();
}

}  // namespace

SparsePoints::SparsePoints(Metric of_metric, bool of_sets, const SparseRows& of_rows, const std::int32_t* ranks,
                           std::int64_t ranked)
    : metric(of_metric), sets(of_sets), rows(of_rows), counts(static_cast<std::size_t>(ranked)) {
  const std::int64_t n = rows.n, entries = rows.indptr[n], blocks = sparse_blocks(n);
  for (std::int64_t i = 0; i < entries; ++i) ++counts[static_cast<std::size_t>(ranks[i])];
  bound[0] = ranks_with(counts, n, kDenseShare);
  bound[1] = ranks_with(counts, n, kFrequentShare);
  bound[2] = ranks_with(counts, n, kCommonShare);
  bound[kRare] = ranks_with(counts, n, kRareShare);

  const auto size = static_cast<std::size_t>(n);
  squares.resize(size);
  double largest = 0;
  for (std::int64_t row = 0; row < n; ++row) {
    squares[static_cast<std::size_t>(row)] = sparse_square(rows, row);
    most_entries = std::max(most_entries, rows.indptr[row + 1] - rows.indptr[row]);
  }
  const bool cosine = is_angular(metric);
  if (!cosine && !sets) {
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
  // The beginnings of the lists: first the lengths are stored, each one place further on, and then running sums.
  const auto frequents = static_cast<std::size_t>(frequent()), row = frequents + 1;
  marks.assign(static_cast<std::size_t>(blocks) * row, 0);
  starts.assign(static_cast<std::size_t>(ranked - bound[kRare]) + 1, 0);
  for (std::int64_t at = 0; at < n; ++at) {
    std::int64_t* lengths = marks.data() + static_cast<std::size_t>(at / kSparseBlock) * row - bound[0] + 1;
    for (std::int64_t i = rows.indptr[at]; i < rows.indptr[at + 1]; ++i) {
      if (ranks[i] >= bound[kRare]) {
        ++starts[static_cast<std::size_t>(ranks[i] - bound[kRare]) + 1];
      } else if (ranks[i] >= bound[0]) {
        ++lengths[ranks[i]];
      }
    }
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::int64_t placed = 0;
  for (std::size_t block = 0; block < static_cast<std::size_t>(blocks); ++block) {
    std::int64_t* lists = marks.data() + block * row;
    lists[0] = placed;
    std::partial_sum(lists, lists + row, lists);
    placed = lists[frequents];
  }
  frequent_terms.resize(static_cast<std::size_t>(placed));
  rare_terms.resize(static_cast<std::size_t>(starts.back()));
  std::vector<std::int64_t> next_rare(starts.begin(), starts.end() - 1), next_frequent(frequents);
  heavy.assign(static_cast<std::size_t>(bound[0] * n), 0.0f);
  row_starts.assign(size + 1, 0);
  std::int64_t kept = 0;
  for (std::int64_t rank = 0; rank < bound[kRare]; ++rank) kept += counts[static_cast<std::size_t>(rank)];
  row_ranks.reserve(static_cast<std::size_t>(kept));
  row_weights.reserve(static_cast<std::size_t>(kept));

  std::vector<std::pair<std::int32_t, float>> by_rank;
  for (std::int64_t point = 0; point < n; ++point) {
    const auto at = static_cast<std::size_t>(point);
    const std::int64_t begin = point / kSparseBlock * kSparseBlock, length = std::min(kSparseBlock, n - begin);
    if (point == begin) {
      const std::int64_t* lists = marks.data() + static_cast<std::size_t>(point / kSparseBlock) * row;
      std::copy_n(lists, frequents, next_frequent.begin());
    }
    const double square = squares[at];
    const bool lost = cosine && square > 0 && square < kShortest * kShortest;  // its direction is not precise
    const double factor = cosine ? (square == 0 || lost ? 0.0 : 1.0 / std::sqrt(square)) : screened ? 1.0 / scale : 0.0;
    double whole = 0, parts[kSparseBounds] = {};
    by_rank.clear();
    for (std::int64_t i = rows.indptr[point]; i < rows.indptr[point + 1]; ++i) {
      const auto weight = static_cast<float>(rows.at(i) * factor);
      const std::int64_t rank = ranks[i];
      const double term = static_cast<double>(weight) * weight;
      whole += term;
      for (int j = 0; j < kSparseBounds; ++j) {
        if (rank < bound[j]) parts[j] += term;
      }
      positive = positive && weight >= kLeastFactor;
      if (rank < bound[0]) {
        heavy[static_cast<std::size_t>(begin * bound[0] + rank * length + point - begin)] = weight;
      } else if (rank < bound[kRare]) {
        const std::int64_t place = next_frequent[static_cast<std::size_t>(rank - bound[0])]++;
        frequent_terms[static_cast<std::size_t>(place)] = {static_cast<std::int32_t>(point - begin), weight};
      } else {
        const std::int64_t place = next_rare[static_cast<std::size_t>(rank - bound[kRare])]++;
        rare_terms[static_cast<std::size_t>(place)] = {static_cast<std::int32_t>(point), weight};
      }
      if (rank < bound[kRare]) by_rank.emplace_back(static_cast<std::int32_t>(rank), weight);
    }
    std::sort(by_rank.begin(), by_rank.end());
    for (const auto& [rank, weight] : by_rank) {
      row_ranks.push_back(rank);
      row_weights.push_back(weight);
    }
    row_starts[at + 1] = static_cast<std::int64_t>(row_ranks.size());
    for (int j = 0; j < kSparseBounds; ++j) rest[j][at] = at_least(std::sqrt(parts[j]) * kMargin);
    if (!cosine) reach[at] = std::max(kLeastFactor, at_least(std::sqrt(whole) * kMargin));
    if (has_squares()) half[at] = static_cast<float>(sets ? whole : whole / 2);
    if (lost) {
      if (reach.empty()) reach.assign(size, 1.0f);
      reach[at] = std::numeric_limits<float>::infinity();
    }
  }
}

std::int64_t SparsePoints::bytes() const {
  const auto of = [](const auto& all) { return static_cast<std::int64_t>(all.capacity() * sizeof(all[0])); };
  std::int64_t sum = of(squares) + of(half) + of(reach) + of(heavy) + of(counts) + of(starts) + of(rare_terms) +
                     of(marks) + of(frequent_terms) + of(row_starts) + of(row_ranks) + of(row_weights);
  for (const auto& part : rest) sum += of(part);
  return sum;
}

}  // namespace tonari
