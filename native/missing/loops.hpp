// The loops over the columns of rows with missing values, one set per instruction set.
#pragma once

#include <cstdint>

#include "core/common.hpp"
#include "core/cpu.hpp"

namespace tonari {

// A query of the screen: its numbers and their columns, which ascend, and a bit for each column (missing/points.hpp).
struct MissingQuery {
  const float* values = nullptr;
  const std::int32_t* columns = nullptr;
  std::int64_t count = 0;
  const std::uint64_t* present = nullptr;
  std::int64_t words = 0;
};

// A group of points (missing/points.hpp).
struct MissingGroup {
  const float* values = nullptr;
  const std::uint64_t* present = nullptr;
};

struct MissingLoops {
  // The points of a group, as bits, that share C > 0 columns with the query, and whose squared differences in these
  // columns, summed in float32 in any order, do not exceed  slope C + offset.
  std::uint64_t (*screen)(const MissingGroup& group, const MissingQuery& query, float slope, float offset);
  // The float64 value of a query and a row; NaN without a common column. The query has d numbers, followed by NaN up to
  // a multiple of 16.
  double (*value)(const double* query, const void* row, Dtype dtype, std::int64_t d);
};

const MissingLoops& missing_loops(Isa isa);

extern const MissingLoops missing_loops_generic;
#if TONARI_X86
extern const MissingLoops missing_loops_avx2;
extern const MissingLoops missing_loops_avx512;
extern const MissingLoops missing_loops_avx512_vpopcntdq;
#elif TONARI_ARM64
extern const MissingLoops missing_loops_neon;
#endif

}  // namespace tonari
