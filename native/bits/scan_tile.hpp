// The loops of the scan. An instruction set defines V:
//
//     kQueries                                      queries whose counts are kept in registers at once
//     count<SHARED, Q>(x, q, width, counted)        bits counted of 16 points and Q queries, counted[Q][16]
//     below(counted, limit)                         in which lanes  counted < limit,  as 16 bits
//     near(counted, counts, query_count, scale)     in which lanes  counted >= scale * (query_count + counts)
//
// A group of points is read once for all queries of the task, which stay in the first-level cache.
#pragma once

#include <bit>

#include "bits/pack.hpp"
#include "bits/scans.hpp"

namespace tonari {
namespace {

template <class V, bool SHARED, int Q>
void scan_group(const BitTask& task, std::int64_t group, std::int64_t first) {
  alignas(64) std::uint32_t counted[Q][kBitLanes];
  const std::uint32_t* const x = task.words + group * task.width * kBitLanes;
  V::template count<SHARED, Q>(x, task.queries + first * task.width, task.width, counted);
  for (int j = 0; j < Q; ++j) {
    const std::int64_t query = first + j;
    std::uint32_t lanes = 0;
    if constexpr (SHARED) {
      lanes = V::near(counted[j], task.counts + group * kBitLanes, task.query_counts[query], task.scales[query]);
    } else {
      lanes = V::below(counted[j], task.limits[query]);
    }
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      const std::int64_t point = task.first_point + group * kBitLanes + lane;
      task.keep(task.context, query, point, static_cast<std::int32_t>(counted[j][lane]));
    }
  }
}

template <class V, bool SHARED>
void scan_groups(const BitTask& task) {
  for (std::int64_t group = task.group_begin; group < task.group_end; ++group) {
    std::int64_t first = 0;
    for (; first + V::kQueries <= task.query_count; first += V::kQueries) {
      scan_group<V, SHARED, V::kQueries>(task, group, first);
    }
    for (; first < task.query_count; ++first) scan_group<V, SHARED, 1>(task, group, first);
  }
}

template <class V>
void scan_bits(const BitTask& task) {
  task.shared ? scan_groups<V, true>(task) : scan_groups<V, false>(task);
}

}  // namespace
}  // namespace tonari
