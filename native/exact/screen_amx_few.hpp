// The screen on AMX tiles for few queries: a tile of sums has one column, for one query, so that its 16 rows are the
// scores of 16 points, one after another in memory. Only for files compiled for AMX.
#pragma once

#include "exact/screen_steps.hpp"
#include "simd/tiles.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kFewOnTiles = 2;  // with more queries, the screen by blocks of 32 queries is as fast

// Keeps those of 16 points from `first` on that may be in the answer of a query.
inline void keep_few(const Task& task, std::int64_t group, std::int64_t first, std::int64_t row, const Floats& score) {
  const PointsView& points = task.points;
  const Floats norm = task.queries.norm[row], rest = task.queries.rest[row];
  const Floats threshold = load_threshold(task.queries.threshold + row);
  const Floats widest =
      fma(norm, Floats(points.group_error_query[group]), rest * Floats(points.group_error_rest[group]));
  if (bits(score - widest <= threshold) == 0) return;
  const Floats bound =
      fma(norm, Floats::load(points.error_query + first), rest * Floats::load(points.error_rest + first));
  const Floats lower = score - bound;
  std::uint32_t mask = bits(lower <= threshold);
  if (mask == 0) return;
  alignas(64) float lowers[Floats::lanes], uppers[Floats::lanes];
  lower.store(lowers);
  (score + bound + 2 * Floats::load(points.error_own + first)).store(uppers);
  for (; mask != 0; mask &= mask - 1) {
    const int p = __builtin_ctz(mask);
    task.keep(task.context, row, lowers[p], uppers[p], first + p);
  }
}

// `POINTS` is the size of a group, and `QUERIES` that of a tile of queries.
template <bool INT8, int POINTS, int QUERIES>
void screen_amx_few(const Task& task) {
  static_assert(Floats::lanes == kTileRows);
  TileConfig config;
  for (const int t : {0, 4, 6}) config.rows[t] = kTileRows, config.bytes_per_row[t] = t == 4 ? 64 : 4;
  const TileScope tiles(config);
  const std::int64_t tile_bytes = static_cast<std::int64_t>(task.depth) * kTileBytes;
  const std::byte* points = static_cast<const std::byte*>(task.points.data);
  const std::byte* queries = static_cast<const std::byte*>(task.queries.data);
  alignas(64) std::int32_t sums[kTileRows];
  for (std::int64_t group = task.group_begin; group < task.group_end; ++group) {
    for (std::int64_t row = 0; row < task.queries.count; ++row) {
      if (!task.visits(static_cast<int>(row / QUERIES), group)) continue;
      const std::byte* query = queries + row / kTileRows * tile_bytes + row % kTileRows * 4;
      for (std::int64_t first = group * POINTS; first < (group + 1) * POINTS; first += kTileRows) {
        const std::byte* tile = points + first / kTileRows * tile_bytes;
        zero<0>();
        for (int run = 0; run < task.depth; ++run) {
          load<4>(tile + run * kTileBytes, 64);
          load<6>(query + run * kTileBytes, 64);
          add_products<INT8, 0, 4, 6>();
        }
        store<0>(sums, 4);
        const auto sum = Int32s::load(sums);
        const Floats low = Floats::load(task.points.low + first);
        if constexpr (INT8) {
          const Floats factor = -task.points.group_scale[group] * task.queries.step[row];
          keep_few(task, group, first, row, fma(convert<float>(sum), factor, low));
        } else {
          keep_few(task, group, first, row, as<float>(sum) + low);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tonari
