#include "exact/boxes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "exact/gaps.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kSpreadRows = 256;  // rows of a run whose spread chooses the column that halves it
constexpr std::int64_t kAtOnce = 2048;     // boxes whose sums stay in the L1 cache while columns are added

bool is_sketched(const SketchedRows& sketch, std::int64_t row) {
  return !std::isnan(sketch.rows[row * sketch.columns]);
}

// The column in which some rows of a run spread most.
std::int64_t widest_column(const SketchedRows& sketch, const std::int64_t* order, std::int64_t count,
                           std::vector<double>& sums) {
  const std::int64_t columns = sketch.columns, step = (count + kSpreadRows - 1) / kSpreadRows;
  sums.assign(static_cast<std::size_t>(2 * columns), 0.0);
  double* const squares = sums.data() + columns;
  std::int64_t taken = 0;
  for (std::int64_t i = 0; i < count; i += step, ++taken) {
    const float* row = sketch.rows + order[i] * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      sums[static_cast<std::size_t>(c)] += row[c];
      squares[c] += static_cast<double>(row[c]) * row[c];
    }
  }
  std::int64_t widest = 0;
  double most = -1;
  for (std::int64_t c = 0; c < columns; ++c) {
    const double sum = sums[static_cast<std::size_t>(c)], spread = squares[c] - sum * sum / static_cast<double>(taken);
    if (spread > most) most = spread, widest = c;
  }
  return widest;
}

double clamped(double x) { return std::clamp(x, 0.0, static_cast<double>(kBoxSteps)); }

}  // namespace

void order_cells(const SketchedRows& sketch, std::int64_t cell, std::int64_t* order) {
  std::int64_t held = 0, beyond = sketch.count;
  for (std::int64_t row = 0; row < sketch.count; ++row) {
    if (is_sketched(sketch, row)) order[held++] = row;
  }
  for (std::int64_t row = sketch.count; row-- > 0;) {
    if (!is_sketched(sketch, row)) order[--beyond] = row;
  }
  std::vector<std::pair<float, std::int64_t>> keys(static_cast<std::size_t>(held));
  std::vector<double> sums;
  std::vector<std::pair<std::int64_t, std::int64_t>> runs{{0, held}};
  while (!runs.empty()) {
    const auto [begin, end] = runs.back();
    runs.pop_back();
    if (end - begin <= cell) continue;
    const std::int64_t column = widest_column(sketch, order + begin, end - begin, sums);
    for (std::int64_t i = begin; i < end; ++i) {
      keys[static_cast<std::size_t>(i)] = {sketch.rows[order[i] * sketch.columns + column], order[i]};
    }
    const std::int64_t half = begin + std::max<std::int64_t>((end - begin) / 2 / cell, 1) * cell;
    std::nth_element(keys.begin() + begin, keys.begin() + half, keys.begin() + end);
    for (std::int64_t i = begin; i < end; ++i) order[i] = keys[static_cast<std::size_t>(i)].second;
    runs.emplace_back(begin, half);
    runs.emplace_back(half, end);
  }
}

void write_boxes(const SketchedRows& sketch, const std::int64_t* order, std::int64_t cell, const BoxSteps& steps,
                 std::uint8_t* low, std::uint8_t* high, std::int64_t stride) {
  const std::int64_t columns = sketch.columns;
  std::vector<double> lows, highs;
  for (std::int64_t begin = 0; begin < sketch.count; begin += cell) {
    lows.assign(static_cast<std::size_t>(columns), kBoxSteps);
    highs.assign(static_cast<std::size_t>(columns), 0.0);
    for (std::int64_t i = begin; i < std::min(begin + cell, sketch.count); ++i) {
      const float* row = sketch.rows + order[i] * columns;
      double square = 0;
      for (std::int64_t c = 0; c < columns; ++c) square += static_cast<double>(row[c]) * row[c];
      const double off = steps.error * std::sqrt(square);
      for (std::size_t c = 0; c < lows.size(); ++c) {
        const bool known = is_sketched(sketch, order[i]);
        const double value = row[c] - steps.least;
        lows[c] = std::min(lows[c], known ? clamped((value - off) / steps.step) : 0.0);
        highs[c] = std::max(highs[c], known ? clamped((value + off) / steps.step) : kBoxSteps);
      }
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t at = c * stride + begin / cell;
      // A thousandth of a step is far more than the rounding of the quotients.
      low[at] = static_cast<std::uint8_t>(clamped(std::floor(lows[static_cast<std::size_t>(c)] - 1e-3)));
      high[at] = static_cast<std::uint8_t>(clamped(std::ceil(highs[static_cast<std::size_t>(c)] + 1e-3)));
    }
  }
}

void query_ends(const double* row, std::int64_t columns, const BoxSteps& steps, std::int32_t* low, std::int32_t* high) {
  double square = 0;
  for (std::int64_t c = 0; c < columns; ++c) square += row[c] * row[c];
  const double off = steps.error * std::sqrt(square);
  for (std::int64_t c = 0; c < columns; ++c) {
    const double value = row[c] - steps.least;
    low[c] = static_cast<std::int32_t>(std::floor(kBoxParts * clamped((value - off) / steps.step - 1e-3)));
    high[c] = static_cast<std::int32_t>(std::ceil(kBoxParts * clamped((value + off) / steps.step + 1e-3)));
  }
}

void box_squares(const BoxesView& boxes, const std::int32_t* query_low, const std::int32_t* query_high,
                 std::int64_t begin, std::int64_t end, std::int32_t* squares, Isa isa) {
  const AddGaps add = gaps_of(isa);
  for (std::int64_t first = begin; first < end; first += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, end - first);
    std::fill_n(squares + first, count, 0);
    for (std::int64_t c = 0; c < boxes.columns; ++c) {
      const std::int64_t at = c * boxes.stride + first;
      add(boxes.low + at, boxes.high + at, count, query_low[c], query_high[c], squares + first);
    }
  }
}

void nearest_boxes(const std::int32_t* squares, std::int64_t count, std::int64_t wanted, std::int64_t* found) {
  std::priority_queue<std::pair<std::int32_t, std::int64_t>> nearest;
  for (std::int64_t g = 0; g < count; ++g) {
    if (std::ssize(nearest) == wanted && squares[g] >= nearest.top().first) continue;
    if (std::ssize(nearest) == wanted) nearest.pop();
    nearest.emplace(squares[g], g);
  }
  for (std::int64_t i = std::ssize(nearest); i-- > 0; nearest.pop()) found[i] = nearest.top().second;
  std::sort(found, found + std::min(wanted, count));
}

AddGaps gaps_of(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return gaps_avx512;
  if (isa >= Isa::avx2) return gaps_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return gaps_neon;
#endif
  (void)isa;
  return gaps_generic;
}

}  // namespace tonari
