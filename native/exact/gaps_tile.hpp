// The loop that compares a query with boxes; each instruction set compiles its own copy, which compilers vectorize.
#pragma once

#include <algorithm>
#include <cstdint>

#include "exact/boxes.hpp"
#include "exact/gaps.hpp"

namespace tonari {
namespace {

inline void add_gaps(const std::uint8_t* low, const std::uint8_t* high, std::int64_t count, std::int32_t query_low,
                     std::int32_t query_high, std::int32_t* squares) {
  for (std::int64_t g = 0; g < count; ++g) {
    const std::int32_t below = low[g] * kBoxParts - query_high, above = query_low - high[g] * kBoxParts;
    const std::int32_t gap = std::max(std::max(below, above), 0);
    squares[g] += gap * gap;
  }
}

}  // namespace
}  // namespace tonari
