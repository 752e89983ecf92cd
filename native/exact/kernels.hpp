// The screen's kernels, and the views of packed memory that they read.
//
// A kernel compares a block of packed queries with groups of packed points. Lanes are queries: one vector register
// holds the same point's score for `lanes` queries, so a group's minimum takes a few vector minima, and one comparison
// with the running thresholds decides whether anything in the group can matter (tang2015 III-E with the bottom level of
// the hierarchy inside the product; III-D describes what happens to the survivors).
#pragma once

#include <vector>

#include "core/common.hpp"
#include "core/cpu.hpp"

namespace tonari {

enum class Precision : int { int8, bfloat16, float32 };
// an extension that a kernel needs beyond its instruction set
enum class Needs : int { nothing, avx_vnni, avx512_vnni, neon_dot };

// The layout of rows in packed memory. K is the run of dimensions that stays together (1, 2 or 4 values, or a 64-byte
// tile row); rows are in groups of `point_group` or `query_tile`:  [row group][dimension / K][row in group][K].
struct Layout {
  int point_group = 0;    // points that share a minimum
  int query_tile = 0;     // queries compared with a group at once
  int run = 1;            // K for points
  int tile_rows = 0;      // rows of a matrix-unit tile (16), or 0: then a tile is the whole group
  int query_offset = 0;   // added to an int8 query so that it is unsigned (pmaddubsw, vpdpbusd take unsigned x signed)
  int query_limit = 127;  // largest magnitude of an int8 query
};

struct PointsView {
  const void* data = nullptr;
  const float* low = nullptr;                // a(x) - e0: the point's part of the score, never too large
  const float* error_query = nullptr;        // e1: error per unit of |q|
  const float* error_rest = nullptr;         // e2: error per unit of the query's own rounding
  const float* error_own = nullptr;          // e0
  const float* group_error_query = nullptr;  // the largest e1 and e2 of each group
  const float* group_error_rest = nullptr;
  const float* group_scale = nullptr;        // int8: value of one step, for the group
  const std::int32_t* correction = nullptr;  // int8: start of the integer sum
  std::int64_t base = 0;                     // index of the first point
};

struct QueriesView {
  const void* data = nullptr;
  const float* norm = nullptr;       // |q|, rounded up
  const float* rest = nullptr;       // |q - q^| and the accumulation error, rounded up
  const float* step = nullptr;       // int8: value of one step
  const float* threshold = nullptr;  // a point whose lowest score is above this cannot be among the answers
  int tiles = 0;
  std::int64_t count = 0;  // queries; further rows of the last tile have a threshold that no point passes
};

// If the queries are points too, one product serves both sides: `threshold[p]` is the threshold of point p as a query,
// and the terms of the queries as points give the score of the reversed pair. Null pointers: one side only.
struct ReverseView {
  const float* threshold = nullptr;  // for each place in the packed run of points
  const float* low = nullptr;        // a(x) of each query as a point; +infinity beyond the last
  const float* own = nullptr;
  const float* tile_norm = nullptr;  // the largest |q| and the largest rest in each tile of queries
  const float* tile_rest = nullptr;
};

// Memory to mark the points that survive for a query of a tile instead of keeping them: [tile][point from `first` on].
// Null: survivors are kept.
struct PointMarks {
  std::uint8_t* marks = nullptr;
  std::int64_t first = 0, stride = 0;

  bool wanted() const { return marks != nullptr; }
  void set(int tile, std::int64_t point) const { marks[tile * stride + (point - first)] = 1; }
};

struct Task {
  PointsView points;
  QueriesView queries;
  ReverseView reverse;
  std::int64_t group_begin = 0, group_end = 0;
  // Of this range, groups with g % stride == 0 (take_stride), all others (skip_stride), or all (stride == 0).
  std::int64_t stride = 0;
  bool take_stride = false;
  // marked: for each tile of queries and group of the range, whether to compare them; null: all. marks: receives the
  // marks of groups that may have a survivor, which is then not kept (exact/look.hpp); null: survivors are kept.
  const std::uint8_t* marked = nullptr;
  std::uint8_t* marks = nullptr;
  PointMarks point_marks = {};
  int depth = 0;  // runs of dimensions: ceil(d / run)
  // Is called for every survivor, with the query's row in the block, bounds on the score, and the point's place in the
  // packed run.
  void (*keep)(void* context, std::int64_t row, float lower, float upper, std::int64_t point) = nullptr;
  // Is called for every query that survives for a point, with the point's place, bounds, and the query's row.
  void (*keep_reverse)(void* context, std::int64_t point, float lower, float upper, std::int64_t row) = nullptr;
  void* context = nullptr;

  std::int64_t mark(int tile, std::int64_t group) const {
    return tile * (group_end - group_begin) + (group - group_begin);
  }
  bool visits(int tile, std::int64_t group) const {
    return (stride == 0 || ((group % stride == 0) == take_stride)) &&
           (marked == nullptr || marked[mark(tile, group)] != 0);
  }
};

// Loads a threshold that another thread may lower at the same time (RowStates::set_threshold): an old value only lets
// more points pass.
inline float load_threshold(const float* p) {
  float threshold;
  __atomic_load(p, &threshold, __ATOMIC_RELAXED);
  return threshold;
}

struct Kernel {
  const char* name = nullptr;  // operation/precision/instruction set: "inner/int8/avx2", "l1/float32/generic"
  Precision precision;
  Isa isa;
  Needs needs = Needs::nothing;
  Layout layout;
  void (*screen)(const Task&) = nullptr;
  double (*peak)(double seconds) = nullptr;  // operations per second of the kernel's main instruction on one core
};

// All kernels of this build that can run on this machine.
std::vector<const Kernel*> available_kernels();

// The kernel of a look at contracted rows before a screen: int8 if its groups and tiles are the same, otherwise
// float32.
const Kernel& look_kernel(const Kernel& screen);

// A bound on the rounding error of a kernel's score, relative to |a(x)| + 2 |q^| |x^| (docs/exactness.md).
double accumulation_error(const Kernel& kernel, std::int64_t d);

}  // namespace tonari
