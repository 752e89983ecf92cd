// The table of loops over boxes, by instruction set (exact/gaps_tile.hpp).
#pragma once

#include <cstdint>

#include "core/cpu.hpp"

namespace tonari {

// Adds the squared gap in one column between a query and each of `count` boxes.
using AddGaps = void (*)(const std::uint8_t* low, const std::uint8_t* high, std::int64_t count, std::int32_t query_low,
                         std::int32_t query_high, std::int32_t* squares);

AddGaps gaps_of(Isa isa);

extern const AddGaps gaps_generic;
#if TONARI_X86
extern const AddGaps gaps_avx2, gaps_avx512;
#elif TONARI_ARM64
extern const AddGaps gaps_neon;
#endif

}  // namespace tonari
