// Rows of bits, packed for the scan: groups of 16 points, each group word by word,
//
//     words[(group * width + w) * 16 + lane]  =  word w of point 16 group + lane
//
// so that one register holds the same word of 16 points, and the counts of a point stay in its lane: nothing is added
// across lanes. A word is 4 bytes of a row in the order of memory; bytes beyond the row and points beyond the last are
// 0. Bits are counted, never numbered, so their order within a byte does not matter.
#pragma once

#include <cstdint>

namespace tonari {

constexpr int kBitLanes = 16;

inline std::int64_t bit_words(std::int64_t bytes) { return (bytes + 3) / 4; }
inline std::int64_t bit_groups(std::int64_t n) { return (n + kBitLanes - 1) / kBitLanes; }

// Packs n rows; `counts` gets the number of bits that are set in each of 16 bit_groups(n) rows, unless it is null.
void pack_bits(const std::uint8_t* rows, std::int64_t n, std::int64_t bytes, std::uint32_t* words,
               std::int32_t* counts);

// Copies each row into bit_words(bytes) words; `counts` gets the number of bits set in each row.
void copy_bits(const std::uint8_t* rows, std::int64_t n, std::int64_t bytes, std::uint32_t* words,
               std::int32_t* counts);

}  // namespace tonari
