// The screen for vector units: one group of points against one tile of queries, all sums in registers.
//
//   for tile of queries:                         [d / K][query_tile][K], stays in the L1 cache
//     for group of points:                       [d / K][point_group][K], streamed once per block of queries
//       sum[p][v] = low[p]                       p < POINTS, v < VECTORS registers of lanes
//       for k: sum[p][v] += x[k][p] * q[k][v]    POINTS * VECTORS multiply-adds for POINTS + VECTORS loads
//       m[v] = min over p of sum[p][v]
//       for queries with m - |q| e1 - rest e2 <= threshold: judge the group's points one by one
//
// Everything here has internal linkage: each instruction set compiles its own copy (simd/vec.hpp), and none may leak
// into baseline code.
#pragma once

#include <type_traits>

#include "exact/screen_few.hpp"
#include "exact/screen_steps.hpp"

namespace tonari {
namespace {

template <int VECTORS>
inline std::uint64_t survivors(const Floats (&least)[VECTORS], const Task& task, std::int64_t group, int tile) {
  const int first = tile * VECTORS * Floats::lanes;
  const Floats e1 = task.points.group_error_query[group];
  const Floats e2 = task.points.group_error_rest[group];
  std::uint64_t mask = 0;
  for (int v = 0; v < VECTORS; ++v) {
    const int lane = first + v * Floats::lanes;
    const auto bound = fma(Floats::load(task.queries.norm + lane), e1, Floats::load(task.queries.rest + lane) * e2);
    const auto lower = least[v] - bound;
    mask |= std::uint64_t{bits(lower <= load_thresholds(task.queries.threshold + lane))} << (v * Floats::lanes);
  }
  return mask;
}

// The points p < POINTS, one bit each, for which some lane passes. Usually only one point of a group does, and a branch
// for each point would be mispredicted at it.
template <int POINTS, class PASSES>
inline std::uint32_t points_that_pass(const PASSES& passes) {
  static_assert(POINTS <= 32);
  std::uint32_t found = 0;
  for (int p = 0; p < POINTS; ++p) found |= std::uint32_t{bits(passes(p)) != 0} << p;
  return found;
}

// Keeps those of POINTS points from `first` on that may be in the answer of a query in `lanes`, each by its own error
// bound. `score(p, v)` is point p's score for register v of queries.
template <int POINTS, int VECTORS, class SCORE>
inline void judge(const Task& task, int tile, std::int64_t first, std::uint64_t lanes, SCORE&& score) {
  const PointsView& points = task.points;
  for (int v = 0; v < VECTORS; ++v) {
    constexpr std::uint64_t full = (std::uint64_t{1} << Floats::lanes) - 1;
    if (((lanes >> (v * Floats::lanes)) & full) == 0) continue;
    const std::int64_t row = (static_cast<std::int64_t>(tile) * VECTORS + v) * Floats::lanes;
    const auto norm = Floats::load(task.queries.norm + row), rest = Floats::load(task.queries.rest + row);
    const auto threshold = load_thresholds(task.queries.threshold + row);
    const auto bound_of = [&](std::int64_t at) {
      return fma(norm, points.error_query[at], rest * points.error_rest[at]);
    };
    const auto passes = [&](int p) { return score(p, v) - bound_of(first + p) <= threshold; };
    for (std::uint32_t left = points_that_pass<POINTS>(passes); left != 0; left &= left - 1) {
      const int p = __builtin_ctz(left);
      const std::int64_t at = first + p;
      const auto s = score(p, v), bound = bound_of(at), lower = s - bound;
      std::uint32_t mask = bits(lower <= threshold);
      if (task.point_marks.wanted()) {
        task.point_marks.set(tile, at);
        continue;
      }
      alignas(64) float lowers[Floats::lanes], uppers[Floats::lanes];
      lower.store(lowers);
      (s + bound + 2 * points.error_own[at]).store(uppers);
      for (; mask != 0; mask &= mask - 1) {
        const int i = __builtin_ctz(mask);
        task.keep(task.context, row + i, lowers[i], uppers[i], at);
      }
    }
  }
}

// The other side of a product. For point p, query i's score is (s - low_p) + low_i; its errors are those of the product
// (the same bound), of a(x_p), at which the sum started, and of a(x_i).
//
// With a limit for each point, one comparison per register decides whether any lane may survive: s + low_i <= limit_p.
// The limit uses the tile's largest bound; a margin of 2^-20 of all terms covers the rounding of this shortcut.
inline void reverse_limits(const Task& task, int tile, std::int64_t first, int count, float* limits) {
  const PointsView& points = task.points;
  const Floats norm = task.reverse.tile_norm[tile], rest = task.reverse.tile_rest[tile];
  for (int p = 0; p < count; p += Floats::lanes) {
    const std::int64_t at = first + p;
    const auto threshold = load_thresholds(task.reverse.threshold + at), low = Floats::load(points.low + at);
    auto bound = fma(norm, Floats::load(points.error_query + at), rest * Floats::load(points.error_rest + at));
    bound = bound + Floats::load(points.error_own + at);
    const auto size = abs(threshold) + abs(low) + bound;
    const auto exact = threshold + low + bound;
    fma(size, 0x1p-20f, exact).store(limits + p);
  }
}

template <int POINTS, int VECTORS, class SCORE>
inline void judge_reverse(const Task& task, int tile, std::int64_t first, SCORE&& score) {
  const PointsView& points = task.points;
  for (int v = 0; v < VECTORS; ++v) {
    const std::int64_t row = (static_cast<std::int64_t>(tile) * VECTORS + v) * Floats::lanes;
    const auto norm = Floats::load(task.queries.norm + row), rest = Floats::load(task.queries.rest + row);
    const auto query_low = Floats::load(task.reverse.low + row), query_own = Floats::load(task.reverse.own + row);
    const auto score_of = [&](int p) { return score(p, v) - points.low[first + p] + query_low; };
    const auto bound_of = [&](std::int64_t at) {
      return fma(norm, points.error_query[at], rest * points.error_rest[at]) + points.error_own[at];
    };
    float thresholds[POINTS];  // read once, since other threads may lower them
    for (int p = 0; p < POINTS; ++p) thresholds[p] = load_threshold(task.reverse.threshold + first + p);
    const auto passes = [&](int p) { return score_of(p) - bound_of(first + p) <= thresholds[p]; };
    for (std::uint32_t left = points_that_pass<POINTS>(passes); left != 0; left &= left - 1) {
      const int p = __builtin_ctz(left);
      const std::int64_t at = first + p;
      const auto s = score_of(p), bound = bound_of(at), lower = s - bound;
      std::uint32_t mask = bits(lower <= thresholds[p]);
      if (task.point_marks.wanted()) {
        task.point_marks.set(tile, at);
        continue;
      }
      alignas(64) float lowers[Floats::lanes], uppers[Floats::lanes];
      lower.store(lowers);
      (s + bound + (query_own + query_own)).store(uppers);
      for (; mask != 0; mask &= mask - 1) {
        const int i = __builtin_ctz(mask);
        task.keep_reverse(task.context, at, lowers[i], uppers[i], row + i);
      }
    }
  }
}

// Keeps points by scores in memory, [point in group][query in tile]; out of line, since most groups have no survivor.
template <int POINTS, int VECTORS>
__attribute__((noinline)) void judge_stored(const Task& task, int tile, std::int64_t group, std::uint64_t lanes,
                                            bool reverse, const float* scores) {
  const auto score = [scores](int p, int v) { return Floats::load(scores + (p * VECTORS + v) * Floats::lanes); };
  if (lanes != 0) judge<POINTS, VECTORS>(task, tile, group * POINTS, lanes, score);
  if (reverse) judge_reverse<POINTS, VECTORS>(task, tile, group * POINTS, score);
}

// Finds survivors after a product: for the queries and, if BOTH, for the points.
template <bool BOTH, int POINTS, int VECTORS>
inline void examine(const Task& task, int tile, std::int64_t group, const Floats (&score)[POINTS][VECTORS]) {
  Floats least[VECTORS];
  for (int v = 0; v < VECTORS; ++v) {
    least[v] = score[0][v];
    for (int p = 1; p < POINTS; ++p) least[v] = min(least[v], score[p][v]);
  }
  const std::uint64_t lanes = survivors<VECTORS>(least, task, group, tile);
  std::uint32_t reverse = 0;
  if constexpr (BOTH) {
    constexpr int padded = (POINTS + Floats::lanes - 1) / Floats::lanes * Floats::lanes;
    alignas(64) float limits[padded];
    reverse_limits(task, tile, group * POINTS, POINTS, limits);
    Floats query_low[VECTORS];
    for (int v = 0; v < VECTORS; ++v)
      query_low[v] = Floats::load(task.reverse.low + (tile * VECTORS + v) * Floats::lanes);
    for (int p = 0; p < POINTS; ++p) {
      const Floats limit = limits[p];
      for (int v = 0; v < VECTORS; ++v) reverse |= bits(score[p][v] + query_low[v] <= limit);
    }
  }
  if (lanes != 0 || reverse != 0) {
    if (task.marks != nullptr) {
      task.marks[task.mark(tile, group)] = 1;
      return;
    }
    alignas(64) float scores[POINTS * VECTORS * Floats::lanes];
    for (int p = 0; p < POINTS; ++p) {
      for (int v = 0; v < VECTORS; ++v) score[p][v].store(scores + (p * VECTORS + v) * Floats::lanes);
    }
    judge_stored<POINTS, VECTORS>(task, tile, group, lanes, reverse != 0, scores);
  }
}

template <class OP, bool BOTH, int POINTS, int VECTORS>
void screen_f32_sides(const Task& task) {
  constexpr int width = VECTORS * Floats::lanes;
  const std::int64_t depth = task.depth;
  const float* points = static_cast<const float*>(task.points.data);
  const float* queries = static_cast<const float*>(task.queries.data);
  // A panel of points stays in the L2 cache while every tile of queries is compared with it.
  constexpr std::int64_t panel_bytes = 256 * 1024;
  const std::int64_t group_bytes = depth * POINTS * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t panel = panel_bytes / group_bytes > 1 ? panel_bytes / group_bytes : 1;
  for (std::int64_t first = task.group_begin; first < task.group_end; first += panel) {
    const std::int64_t last = first + panel < task.group_end ? first + panel : task.group_end;
    for (int tile = 0; tile < task.queries.tiles; ++tile) {
      const float* q = queries + static_cast<std::int64_t>(tile) * depth * width;
      for (std::int64_t group = first; group < last; ++group) {
        if (!task.visits(tile, group)) continue;
        const float* x = points + group * depth * POINTS;
        const float* low = task.points.low + group * POINTS;
        Floats sum[POINTS][VECTORS];
        for (int p = 0; p < POINTS; ++p) {
          for (int v = 0; v < VECTORS; ++v) sum[p][v] = OP::starts_low ? low[p] : 0.0f;
        }
        for (std::int64_t k = 0; k < depth; ++k) {
          Floats qk[VECTORS];
          for (int v = 0; v < VECTORS; ++v) qk[v] = Floats::load(q + k * width + v * Floats::lanes);
#pragma GCC unroll 16
          for (int p = 0; p < POINTS; ++p) {
            const Floats xk = x[k * POINTS + p];
            for (int v = 0; v < VECTORS; ++v) sum[p][v] = OP::step(xk, qk[v], sum[p][v]);
          }
        }
        if constexpr (!OP::starts_low) {
          for (int p = 0; p < POINTS; ++p) {
            for (int v = 0; v < VECTORS; ++v) sum[p][v] = sum[p][v] + low[p];
          }
        }
        examine<BOTH, POINTS, VECTORS>(task, tile, group, sum);
      }
    }
  }
}

template <class OP, int POINTS, int VECTORS>
void screen_f32(const Task& task) {
  if constexpr (std::is_same_v<OP, InnerOp>) {
    if (task.reverse.threshold != nullptr) return screen_f32_sides<OP, true, POINTS, VECTORS>(task);
  }
  if (task.queries.count <= kFewQueries) return screen_few<FewFloats<OP, POINTS, VECTORS>>(task);
  screen_f32_sides<OP, false, POINTS, VECTORS>(task);
}

// The name of an operation and the rest of a kernel's name ("/float32/avx2") as one string.
template <const auto& NAME, const auto& REST>
struct Joined {
  char text[sizeof NAME + sizeof REST - 1] = {};
  constexpr Joined() {
    for (std::size_t i = 0; i + 1 < sizeof NAME; ++i) text[i] = NAME[i];
    for (std::size_t i = 0; i < sizeof REST; ++i) text[sizeof NAME - 1 + i] = REST[i];
  }
};
template <const auto& NAME, const auto& REST>
constexpr Joined<NAME, REST> kJoined{};

// The kernels of an instruction set: like `common`, for products and for every elementwise metric, then `others`.
template <std::size_t COUNT>
struct KernelTable {
  Kernel kernels[COUNT];
};
template <const auto& REST, int POINTS, int VECTORS, class... TERMS, class... Others>
constexpr auto float32_kernels(TermList<TERMS...>, const Kernel& common, const Others&... others) {
  const auto made = [&]<class OP>(OP) {
    Kernel kernel = common;
    kernel.name = kJoined<OP::name, REST>.text;
    kernel.screen = screen_f32<OP, POINTS, VECTORS>;
    return kernel;
  };
  return KernelTable<1 + sizeof...(TERMS) + sizeof...(Others)>{{made(InnerOp{}), made(TermOp<TERMS>{})..., others...}};
}

// The screen in int8 with exact integer sums: DOT::add adds four products of bytes per lane.
//   score = low - (group step * query step) * sum,  where the query's step includes the factor 2
template <class DOT, bool BOTH, int POINTS, int VECTORS>
void screen_i8_sides(const Task& task) {
  constexpr int width = VECTORS * Floats::lanes;
  const std::int64_t depth = task.depth;
  const std::int32_t* points = static_cast<const std::int32_t*>(task.points.data);
  const std::int32_t* queries = static_cast<const std::int32_t*>(task.queries.data);
  constexpr std::int64_t panel_bytes = 256 * 1024;
  const std::int64_t group_bytes = depth * POINTS * 4;
  const std::int64_t panel = panel_bytes / group_bytes > 1 ? panel_bytes / group_bytes : 1;
  for (std::int64_t first = task.group_begin; first < task.group_end; first += panel) {
    const std::int64_t last = first + panel < task.group_end ? first + panel : task.group_end;
    for (int tile = 0; tile < task.queries.tiles; ++tile) {
      const std::int32_t* q = queries + static_cast<std::int64_t>(tile) * depth * width;
      for (std::int64_t group = first; group < last; ++group) {
        if (!task.visits(tile, group)) continue;
        const std::int32_t* x = points + group * depth * POINTS;
        const float* low = task.points.low + group * POINTS;
        const std::int32_t* correction = task.points.correction + group * POINTS;
        Int32s sum[POINTS][VECTORS];
        for (int p = 0; p < POINTS; ++p) {
          for (int v = 0; v < VECTORS; ++v) sum[p][v] = correction[p];
        }
        for (std::int64_t k = 0; k < depth; ++k) {
          Int32s qk[VECTORS];
          for (int v = 0; v < VECTORS; ++v) qk[v] = Int32s::load(q + k * width + v * Floats::lanes);
#pragma GCC unroll 16
          for (int p = 0; p < POINTS; ++p) {
            const Int32s xk = x[k * POINTS + p];
            for (int v = 0; v < VECTORS; ++v) sum[p][v] = DOT::add(sum[p][v], qk[v], xk);
          }
        }
        const Floats step = -task.points.group_scale[group];
        Floats score[POINTS][VECTORS];
        for (int v = 0; v < VECTORS; ++v) {
          const Floats factor = step * Floats::load(task.queries.step + tile * width + v * Floats::lanes);
          for (int p = 0; p < POINTS; ++p) score[p][v] = fma(convert<float>(sum[p][v]), factor, low[p]);
        }
        examine<BOTH, POINTS, VECTORS>(task, tile, group, score);
      }
    }
  }
}

template <class DOT, int POINTS, int VECTORS>
void screen_i8(const Task& task) {
  if (task.reverse.threshold != nullptr) return screen_i8_sides<DOT, true, POINTS, VECTORS>(task);
  if (task.queries.count <= kFewQueries) return screen_few<FewBytes<DOT, POINTS, VECTORS>>(task);
  screen_i8_sides<DOT, false, POINTS, VECTORS>(task);
}

}  // namespace
}  // namespace tonari
