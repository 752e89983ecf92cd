// The loops of the screen over the points of a block, one set per instruction set. No operations are fused or
// reordered, so all sets compute the same bits.
#pragma once

#include <cstdint>

#include "core/cpu.hpp"

namespace tonari {

// A lower bound of the key of each point i of a block (sparse/block.hpp):
//
//     low(i)  =  half_scale * half[i] - sums[i] - error * reach[i] - rest_scale * rest[i]
//
// `half`, `reach` and `rest` may be null: then half[i] = 0, reach[i] = 1, rest[i] = 0.
struct SparseBounds {
  const float* sums = nullptr;
  const float* half = nullptr;
  const float* reach = nullptr;
  const float* rest = nullptr;
  float half_scale = 0, error = 0, rest_scale = 0;
};

struct SparseSweeps {
  // Adds weights[j] * columns[j][i] to sums[i], for one column j after another.
  void (*add)(float* sums, std::int64_t length, const float* const* columns, const float* weights, std::int64_t count);
  // Writes the points in [begin, end) whose lower bound is not above `most`, in ascending order, and returns their
  // number; -1 as soon as there are more than `room` of them.
  std::int64_t (*collect)(const SparseBounds& bounds, std::int64_t begin, std::int64_t end, float most,
                          std::int32_t* found, std::int64_t room);
};

const SparseSweeps& sparse_sweeps(Isa isa);

extern const SparseSweeps sparse_sweeps_generic;
#if TONARI_X86
extern const SparseSweeps sparse_sweeps_avx2;
extern const SparseSweeps sparse_sweeps_avx512;
#endif

}  // namespace tonari
