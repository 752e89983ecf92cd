// The screen for vector units: one group of points against one tile of queries, all sums in registers.
//
//   for tile of queries:                         [d / K][query_tile][K], stays in the first cache
//     for group of points:                       [d / K][point_group][K], streams once per block of queries
//       sum[p][v] = low[p]                       p < POINTS, v < VECTORS registers of lanes
//       for k: sum[p][v] += x[k][p] * q[k][v]    POINTS * VECTORS multiply-adds for POINTS + VECTORS loads
//       m[v] = min over p of sum[p][v]
//       for queries with m - |q| e1 - rest e2 <= threshold: judge the group's points one by one
//
// V supplies the registers of one instruction set. Everything here has internal linkage: each instruction set compiles
// its own copy, and none may leak into baseline code.
#pragma once

#include <type_traits>

#include "exact/kernels.hpp"
#include "core/metrics.hpp"

namespace tonari {
namespace {

// Thresholds, which another thread may lower meanwhile (RowStates::set_threshold): an older one lets more through. The
// lanes of a register are as atomic as float32 is, but C++ has no word for it, so ThreadSanitizer sees them one by one.
inline float load_threshold(const float* p) {
  float threshold;
  __atomic_load(p, &threshold, __ATOMIC_RELAXED);
  return threshold;
}
template <class V>
inline typename V::F load_thresholds(const float* p) {
#if defined(__SANITIZE_THREAD__)
  alignas(64) float lanes[V::lanes];
  for (int i = 0; i < V::lanes; ++i) lanes[i] = load_threshold(p + i);
  return V::load(lanes);
#else
  return V::load(p);
#endif
}

template <class V, int VECTORS>
inline std::uint64_t survivors(const typename V::F (&least)[VECTORS], const Task& task, std::int64_t group, int tile) {
  const int first = tile * VECTORS * V::lanes;
  const auto e1 = V::set1(task.points.group_error_query[group]);
  const auto e2 = V::set1(task.points.group_error_rest[group]);
  std::uint64_t mask = 0;
  for (int v = 0; v < VECTORS; ++v) {
    const int lane = first + v * V::lanes;
    const auto bound = V::fma(V::load(task.queries.norm + lane), e1, V::mul(V::load(task.queries.rest + lane), e2));
    const auto lower = V::sub(least[v], bound);
    const auto threshold = load_thresholds<V>(task.queries.threshold + lane);
    mask |= static_cast<std::uint64_t>(V::less_equal(lower, threshold)) << (v * V::lanes);
  }
  return mask;
}

// Keeps those of POINTS points from `first` on that may matter to the queries in `lanes`, each judged by its own error
// bound. `score(p, v)` is point p's score for register v of queries.
template <class V, int POINTS, int VECTORS, class SCORE>
inline void judge(const Task& task, int tile, std::int64_t first, std::uint64_t lanes, SCORE&& score) {
  const PointsView& points = task.points;
  for (int v = 0; v < VECTORS; ++v) {
    constexpr std::uint64_t full = (std::uint64_t{1} << V::lanes) - 1;
    if (((lanes >> (v * V::lanes)) & full) == 0) continue;
    const std::int64_t row = (static_cast<std::int64_t>(tile) * VECTORS + v) * V::lanes;
    const auto norm = V::load(task.queries.norm + row), rest = V::load(task.queries.rest + row);
    const auto threshold = load_thresholds<V>(task.queries.threshold + row);
    for (int p = 0; p < POINTS; ++p) {
      const std::int64_t at = first + p;
      const auto s = score(p, v);
      const auto bound = V::fma(norm, V::set1(points.error_query[at]), V::mul(rest, V::set1(points.error_rest[at])));
      const auto lower = V::sub(s, bound);
      std::uint32_t mask = V::less_equal(lower, threshold);
      if (mask == 0) continue;
      alignas(64) float lowers[V::lanes], uppers[V::lanes];
      V::store(lowers, lower);
      V::store(uppers, V::add(V::add(s, bound), V::set1(2 * points.error_own[at])));
      for (; mask != 0; mask &= mask - 1) {
        const int i = __builtin_ctz(mask);
        task.keep(task.context, row + i, lowers[i], uppers[i], at);
      }
    }
  }
}

// The other side of a product. From point p's place, query i's score is (s - low_p) + low_i; its errors are those of
// the product (the same bound), of a(x_p), on which the sum started, and of a(x_i).
//
// A limit per point tells in one compare per register whether any lane can matter: s + low_i <= limit_p. It uses the
// tile's largest bound, and 2^-20 of all that is added pays for the roundings of this shortcut.
template <class V>
inline void reverse_limits(const Task& task, int tile, std::int64_t first, int count, float* limits) {
  const PointsView& points = task.points;
  const auto norm = V::set1(task.reverse.tile_norm[tile]), rest = V::set1(task.reverse.tile_rest[tile]);
  for (int p = 0; p < count; p += V::lanes) {
    const std::int64_t at = first + p;
    const auto threshold = load_thresholds<V>(task.reverse.threshold + at), low = V::load(points.low + at);
    auto bound = V::fma(norm, V::load(points.error_query + at), V::mul(rest, V::load(points.error_rest + at)));
    bound = V::add(bound, V::load(points.error_own + at));
    const auto size = V::add(V::add(V::abs(threshold), V::abs(low)), bound);
    const auto exact = V::add(V::add(threshold, low), bound);
    V::store(limits + p, V::fma(size, V::set1(0x1p-20f), exact));
  }
}

template <class V, int POINTS, int VECTORS, class SCORE>
inline void judge_reverse(const Task& task, int tile, std::int64_t first, SCORE&& score) {
  const PointsView& points = task.points;
  for (int v = 0; v < VECTORS; ++v) {
    const std::int64_t row = (static_cast<std::int64_t>(tile) * VECTORS + v) * V::lanes;
    const auto norm = V::load(task.queries.norm + row), rest = V::load(task.queries.rest + row);
    const auto query_low = V::load(task.reverse.low + row), query_own = V::load(task.reverse.own + row);
    for (int p = 0; p < POINTS; ++p) {
      const std::int64_t at = first + p;
      const auto s = V::add(V::sub(score(p, v), V::set1(points.low[at])), query_low);
      auto bound = V::fma(norm, V::set1(points.error_query[at]), V::mul(rest, V::set1(points.error_rest[at])));
      bound = V::add(bound, V::set1(points.error_own[at]));
      const auto lower = V::sub(s, bound);
      std::uint32_t mask = V::less_equal(lower, V::set1(load_threshold(task.reverse.threshold + at)));
      if (mask == 0) continue;
      alignas(64) float lowers[V::lanes], uppers[V::lanes];
      V::store(lowers, lower);
      V::store(uppers, V::add(V::add(s, bound), V::add(query_own, query_own)));
      for (; mask != 0; mask &= mask - 1) {
        const int i = __builtin_ctz(mask);
        task.keep_reverse(task.context, at, lowers[i], uppers[i], row + i);
      }
    }
  }
}

// The same from scores in memory, [point in group][query in tile]; out of line, since most groups hold no survivor.
template <class V, int POINTS, int VECTORS>
__attribute__((noinline)) void judge_stored(const Task& task, int tile, std::int64_t group, std::uint64_t lanes,
                                            bool reverse, const float* scores) {
  const auto score = [scores](int p, int v) { return V::load(scores + (p * VECTORS + v) * V::lanes); };
  if (lanes != 0) judge<V, POINTS, VECTORS>(task, tile, group * POINTS, lanes, score);
  if (reverse) judge_reverse<V, POINTS, VECTORS>(task, tile, group * POINTS, score);
}

// What follows a product: is there anything in it for the queries, or (BOTH) for the points?
template <class V, bool BOTH, int POINTS, int VECTORS>
inline void examine(const Task& task, int tile, std::int64_t group, const typename V::F (&score)[POINTS][VECTORS]) {
  typename V::F least[VECTORS];
  for (int v = 0; v < VECTORS; ++v) {
    least[v] = score[0][v];
    for (int p = 1; p < POINTS; ++p) least[v] = V::min(least[v], score[p][v]);
  }
  const std::uint64_t lanes = survivors<V, VECTORS>(least, task, group, tile);
  std::uint32_t reverse = 0;
  if constexpr (BOTH) {
    constexpr int padded = (POINTS + V::lanes - 1) / V::lanes * V::lanes;
    alignas(64) float limits[padded];
    reverse_limits<V>(task, tile, group * POINTS, POINTS, limits);
    typename V::F query_low[VECTORS];
    for (int v = 0; v < VECTORS; ++v) query_low[v] = V::load(task.reverse.low + (tile * VECTORS + v) * V::lanes);
    for (int p = 0; p < POINTS; ++p) {
      const auto limit = V::set1(limits[p]);
      for (int v = 0; v < VECTORS; ++v) reverse |= V::less_equal(V::add(score[p][v], query_low[v]), limit);
    }
  }
  if (lanes != 0 || reverse != 0) {
    alignas(64) float scores[POINTS * VECTORS * V::lanes];
    for (int p = 0; p < POINTS; ++p) {
      for (int v = 0; v < VECTORS; ++v) V::store(scores + (p * VECTORS + v) * V::lanes, score[p][v]);
    }
    judge_stored<V, POINTS, VECTORS>(task, tile, group, lanes, reverse != 0, scores);
  }
}

// The operations of a tile: how a score starts, and how one dimension is added.
template <class V>
struct InnerOp {  // queries are packed as -2 q', so the sum of products is the score
  static constexpr char name[] = "inner";
  static constexpr bool starts_low = true;
  static typename V::F step(typename V::F x, typename V::F q, typename V::F sum) { return V::fma(x, q, sum); }
};
template <class V, class TERM>
struct TermOp {
  static constexpr auto& name = TERM::name;
  static constexpr bool starts_low = !TERM::maximum;
  static typename V::F step(typename V::F x, typename V::F q, typename V::F sum) {
    const auto term = TERM::template screened<V>(q, x);
    if constexpr (TERM::maximum) return V::max(sum, term);
    else return V::add(sum, term);
  }
};

template <class V, class OP, bool BOTH, int POINTS, int VECTORS>
void screen_f32_sides(const Task& task) {
  using F = typename V::F;
  constexpr int width = VECTORS * V::lanes;
  const std::int64_t depth = task.depth;
  const float* points = static_cast<const float*>(task.points.data);
  const float* queries = static_cast<const float*>(task.queries.data);
  // Points that stay in the second cache while every query tile passes over them.
  constexpr std::int64_t panel_bytes = 256 * 1024;
  const std::int64_t group_bytes = depth * POINTS * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t panel = panel_bytes / group_bytes > 1 ? panel_bytes / group_bytes : 1;
  for (std::int64_t first = task.group_begin; first < task.group_end; first += panel) {
    const std::int64_t last = first + panel < task.group_end ? first + panel : task.group_end;
    for (int tile = 0; tile < task.queries.tiles; ++tile) {
      const float* q = queries + static_cast<std::int64_t>(tile) * depth * width;
      for (std::int64_t group = first; group < last; ++group) {
        if (!task.visits(group)) continue;
        const float* x = points + group * depth * POINTS;
        const float* low = task.points.low + group * POINTS;
        F sum[POINTS][VECTORS];
        for (int p = 0; p < POINTS; ++p) {
          for (int v = 0; v < VECTORS; ++v) sum[p][v] = OP::starts_low ? V::set1(low[p]) : V::zero();
        }
        for (std::int64_t k = 0; k < depth; ++k) {
          F qk[VECTORS];
          for (int v = 0; v < VECTORS; ++v) qk[v] = V::load(q + k * width + v * V::lanes);
#pragma GCC unroll 16
          for (int p = 0; p < POINTS; ++p) {
            const F xk = V::set1(x[k * POINTS + p]);
            for (int v = 0; v < VECTORS; ++v) sum[p][v] = OP::step(xk, qk[v], sum[p][v]);
          }
        }
        if constexpr (!OP::starts_low) {
          for (int p = 0; p < POINTS; ++p) {
            for (int v = 0; v < VECTORS; ++v) sum[p][v] = V::add(sum[p][v], V::set1(low[p]));
          }
        }
        examine<V, BOTH, POINTS, VECTORS>(task, tile, group, sum);
      }
    }
  }
}

template <class V, class OP, int POINTS, int VECTORS>
void screen_f32(const Task& task) {
  if constexpr (std::is_same_v<OP, InnerOp<V>>) {
    if (task.reverse.threshold != nullptr) return screen_f32_sides<V, OP, true, POINTS, VECTORS>(task);
  }
  screen_f32_sides<V, OP, false, POINTS, VECTORS>(task);
}

// "l1/float32/avx2", of an operation's name and "/float32/avx2".
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

// The float32 kernels of one instruction set: like `common`, of products and of every elementwise metric; then others.
template <std::size_t COUNT>
struct KernelTable {
  Kernel kernels[COUNT];
};
template <class V, const auto& REST, int POINTS, int VECTORS, class... TERMS, class... Others>
constexpr auto float32_kernels(TermList<TERMS...>, const Kernel& common, const Others&... others) {
  const auto made = [&]<class OP>(OP) {
    Kernel kernel = common;
    kernel.name = kJoined<OP::name, REST>.text;
    kernel.screen = screen_f32<V, OP, POINTS, VECTORS>;
    return kernel;
  };
  return KernelTable<1 + sizeof...(TERMS) + sizeof...(Others)>{
      {made(InnerOp<V>{}), made(TermOp<V, TERMS>{})..., others...}};
}

// The same for int8 with exact integer sums: V::dot adds four products of bytes per lane.
//   score = low - (group step * query step) * sum,  the step of the query being packed with its factor 2
template <class V, bool BOTH, int POINTS, int VECTORS>
void screen_i8_sides(const Task& task) {
  using F = typename V::F;
  using I = typename V::I;
  constexpr int width = VECTORS * V::lanes;
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
        if (!task.visits(group)) continue;
        const std::int32_t* x = points + group * depth * POINTS;
        const float* low = task.points.low + group * POINTS;
        const std::int32_t* correction = task.points.correction + group * POINTS;
        I sum[POINTS][VECTORS];
        for (int p = 0; p < POINTS; ++p) {
          for (int v = 0; v < VECTORS; ++v) sum[p][v] = V::set1_i32(correction[p]);
        }
        for (std::int64_t k = 0; k < depth; ++k) {
          I qk[VECTORS];
          for (int v = 0; v < VECTORS; ++v) qk[v] = V::load_i32(q + k * width + v * V::lanes);
#pragma GCC unroll 16
          for (int p = 0; p < POINTS; ++p) {
            const I xk = V::set1_i32(x[k * POINTS + p]);
            for (int v = 0; v < VECTORS; ++v) sum[p][v] = V::dot(sum[p][v], qk[v], xk);
          }
        }
        const F step = V::set1(-task.points.group_scale[group]);
        F score[POINTS][VECTORS];
        for (int v = 0; v < VECTORS; ++v) {
          const F factor = V::mul(step, V::load(task.queries.step + tile * width + v * V::lanes));
          for (int p = 0; p < POINTS; ++p) score[p][v] = V::fma(V::to_f32(sum[p][v]), factor, V::set1(low[p]));
        }
        examine<V, BOTH, POINTS, VECTORS>(task, tile, group, score);
      }
    }
  }
}

template <class V, int POINTS, int VECTORS>
void screen_i8(const Task& task) {
  if (task.reverse.threshold != nullptr) return screen_i8_sides<V, true, POINTS, VECTORS>(task);
  screen_i8_sides<V, false, POINTS, VECTORS>(task);
}

}  // namespace
}  // namespace tonari
