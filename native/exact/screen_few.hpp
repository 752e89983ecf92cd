// The screen for few queries: lanes are the points of a group, where the tile's lanes are queries (exact/screen_tile.hpp),
// most of which would be empty.
//
//   for group of points:                         [d / K][point_group][K]
//     for query:                                 [d / K][query_tile][K], one of the tile
//       sum[i] = 0, but sum[0] = low             i < kChains: so many additions do not wait for each other
//       for k: sum[k % kChains] += x[k] * q[k]   a register of points, of which the first POINTS are the group's
//       for points with sum - |q| e1 - rest e2 <= threshold: keep
//
// It has one product per group instead of one per point, so its time is that of reading memory. The register's other
// lanes contain the memory behind the group; PackedPoints has one more register behind its last group. Internal linkage
// throughout: each instruction set compiles its own copy.
#pragma once

#include "exact/screen_steps.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kFewQueries = 4;  // with more queries, the screen by tiles is as fast
constexpr int kChains = 4;

template <class OP, int POINTS_, int VECTORS>
struct FewFloats {
  static constexpr int POINTS = POINTS_, width = VECTORS * Floats::lanes;

  static Floats score(const Task& task, std::int64_t group, std::int64_t row) {
    const std::int64_t depth = task.depth;
    const float* x = static_cast<const float*>(task.points.data) + group * depth * POINTS;
    const float* q = static_cast<const float*>(task.queries.data) + row / width * depth * width + row % width;
    const Floats low = Floats::load(task.points.low + group * POINTS);
    Floats sum[kChains];
    for (int i = 0; i < kChains; ++i) sum[i] = 0.0f;
    if (OP::starts_low) sum[0] = low;
    std::int64_t k = 0;
    for (; k + kChains <= depth; k += kChains) {
#pragma GCC unroll 4
      for (int i = 0; i < kChains; ++i) {
        sum[i] = OP::step(Floats::load(x + (k + i) * POINTS), q[(k + i) * width], sum[i]);
      }
    }
    for (; k < depth; ++k) sum[0] = OP::step(Floats::load(x + k * POINTS), q[k * width], sum[0]);
    const Floats whole = OP::join(OP::join(sum[0], sum[1]), OP::join(sum[2], sum[3]));
    return OP::starts_low ? whole : whole + low;
  }
};

// The screen for few queries in int8, with exact integer sums; see screen_i8_sides.
template <class DOT, int POINTS_, int VECTORS>
struct FewBytes {
  static constexpr int POINTS = POINTS_, width = VECTORS * Floats::lanes;

  static Floats score(const Task& task, std::int64_t group, std::int64_t row) {
    const std::int64_t depth = task.depth;
    const std::int32_t* x = static_cast<const std::int32_t*>(task.points.data) + group * depth * POINTS;
    const std::int32_t* q =
        static_cast<const std::int32_t*>(task.queries.data) + row / width * depth * width + row % width;
    Int32s sum[kChains];
    for (int i = 0; i < kChains; ++i) sum[i] = 0;
    sum[0] = Int32s::load(task.points.correction + group * POINTS);
    std::int64_t k = 0;
    for (; k + kChains <= depth; k += kChains) {
#pragma GCC unroll 4
      for (int i = 0; i < kChains; ++i) {
        sum[i] = DOT::add(sum[i], q[(k + i) * width], Int32s::load(x + (k + i) * POINTS));
      }
    }
    for (; k < depth; ++k) sum[0] = DOT::add(sum[0], q[k * width], Int32s::load(x + k * POINTS));
    const Floats factor = -task.points.group_scale[group] * task.queries.step[row];
    return fma(convert<float>((sum[0] + sum[1]) + (sum[2] + sum[3])), factor,
               Floats::load(task.points.low + group * POINTS));
  }
};

template <class FEW>
void screen_few(const Task& task) {
  constexpr int POINTS = FEW::POINTS;
  static_assert(POINTS <= Floats::lanes);
  constexpr std::uint32_t own = (std::uint32_t{1} << POINTS) - 1;
  const PointsView& points = task.points;
  for (std::int64_t group = task.group_begin; group < task.group_end; ++group) {
    for (std::int64_t row = 0; row < task.queries.count; ++row) {
      const auto tile = static_cast<int>(row / FEW::width);
      if (!task.visits(tile, group)) continue;
      const Floats score = FEW::score(task, group, row);
      const float norm = task.queries.norm[row], rest = task.queries.rest[row];
      const float threshold = load_threshold(task.queries.threshold + row);
      const float widest = norm * points.group_error_query[group] + rest * points.group_error_rest[group];
      if ((bits(score - Floats(widest) <= Floats(threshold)) & own) == 0) continue;
      if (task.marks != nullptr) {
        task.marks[task.mark(tile, group)] = 1;
        continue;
      }
      const std::int64_t first = group * POINTS;
      const Floats bound = fma(Floats(norm), Floats::load(points.error_query + first),
                               Floats(rest) * Floats::load(points.error_rest + first));
      const Floats lower = score - bound;
      std::uint32_t mask = bits(lower <= Floats(threshold)) & own;
      if (mask == 0) continue;
      alignas(64) float lowers[Floats::lanes], uppers[Floats::lanes];
      lower.store(lowers);
      (score + bound + 2 * Floats::load(points.error_own + first)).store(uppers);
      for (; mask != 0; mask &= mask - 1) {
        const int p = __builtin_ctz(mask);
        if (task.point_marks.wanted()) task.point_marks.set(tile, first + p);
        else task.keep(task.context, row, lowers[p], uppers[p], first + p);
      }
    }
  }
}

}  // namespace
}  // namespace tonari
