// Counts the bits in which rows differ, or that they share, for all pairs of some queries and some groups of points.
//
//     differing  =  |q ^ x|                    hamming
//     shared     =  |q & x|                    jaccard: 1 - shared / (|q| + |x| - shared)
//
// A pair is passed to `keep` if it may be near enough for its query. If differing bits are counted, `limits` decides
// exactly. If shared bits are counted, `scales` decides in float32, whose rounding may only let additional pairs pass
// (bits/block.cpp). Points come in ascending order. `keep` may lower its query's limit.
#pragma once

#include <cstdint>

#include "core/cpu.hpp"

namespace tonari {

struct BitTask {
  const std::uint32_t* words = nullptr;  // the points, as bits/pack.hpp packs them
  const std::int32_t* counts = nullptr;  // bits set in each point
  std::int64_t width = 0;                // words of a row
  std::int64_t group_begin = 0, group_end = 0;
  std::int64_t first_point = 0;                // the number of the first point of group 0
  const std::uint32_t* queries = nullptr;      // the queries' words, row by row
  const std::int32_t* query_counts = nullptr;  // bits set in each query
  std::int64_t query_count = 0;
  bool shared = false;                   // count shared bits, else differing ones
  const std::int32_t* limits = nullptr;  // keep if  differing < limit
  const float* scales = nullptr;         // keep if  shared >= scale * (bits of the query + bits of the point)
  void (*keep)(void* context, std::int64_t query, std::int64_t point, std::int32_t counted) = nullptr;
  void* context = nullptr;
};

using BitScan = void (*)(const BitTask& task);
BitScan bit_scan(Isa isa);

}  // namespace tonari
