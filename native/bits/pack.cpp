#include "bits/pack.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tonari {
namespace {

// Returns word w of a row, with zeros for bytes beyond the row.
std::uint32_t word_of(const std::uint8_t* row, std::int64_t bytes, std::int64_t w) {
  std::uint32_t word = 0;
  std::memcpy(&word, row + 4 * w, static_cast<std::size_t>(std::min<std::int64_t>(4, bytes - 4 * w)));
  return word;
}

// Counts the bits that are set in each lane. For processors without an instruction for it, bits are added in pairs,
// fours and eights, in vectors; the bytes of a sum hold the counts of 31 words.
void count_lanes(const std::uint32_t* packed, std::int64_t width, std::int32_t* counts) {
  constexpr std::int64_t most = 31;
  std::fill(counts, counts + kBitLanes, 0);
  for (std::int64_t begin = 0; begin < width; begin += most) {
    std::uint32_t sums[kBitLanes] = {};
    const std::int64_t end = std::min(begin + most, width);
    for (std::int64_t w = begin; w < end; ++w) {
      for (int lane = 0; lane < kBitLanes; ++lane) {
        std::uint32_t x = packed[w * kBitLanes + lane];
        x -= x >> 1 & 0x55555555u;
        x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
        sums[lane] += (x + (x >> 4)) & 0x0f0f0f0fu;
      }
    }
    for (int lane = 0; lane < kBitLanes; ++lane) {
      const std::uint32_t pairs = (sums[lane] & 0x00ff00ffu) + (sums[lane] >> 8 & 0x00ff00ffu);
      counts[lane] += static_cast<std::int32_t>((pairs & 0xffffu) + (pairs >> 16));
    }
  }
}

}  // namespace

void pack_bits(const std::uint8_t* rows, std::int64_t n, std::int64_t bytes, std::uint32_t* words,
               std::int32_t* counts) {
  const std::int64_t width = bit_words(bytes), whole = bytes / 4;
  for (std::int64_t group = 0; group < bit_groups(n); ++group) {
    std::uint32_t* const packed = words + group * width * kBitLanes;
    for (int lane = 0; lane < kBitLanes; ++lane) {
      const std::int64_t point = group * kBitLanes + lane;
      if (point >= n) {
        for (std::int64_t w = 0; w < width; ++w) packed[w * kBitLanes + lane] = 0;
        continue;
      }
      const std::uint8_t* const row = rows + point * bytes;
      for (std::int64_t w = 0; w < whole; ++w) std::memcpy(packed + w * kBitLanes + lane, row + 4 * w, 4);
      if (whole < width) packed[whole * kBitLanes + lane] = word_of(row, bytes, whole);
    }
    if (counts != nullptr) count_lanes(packed, width, counts + group * kBitLanes);
  }
}

void copy_bits(const std::uint8_t* rows, std::int64_t n, std::int64_t bytes, std::uint32_t* words,
               std::int32_t* counts) {
  const std::int64_t width = bit_words(bytes);
  for (std::int64_t row = 0; row < n; ++row) {
    counts[row] = 0;
    for (std::int64_t w = 0; w < width; ++w) {
      const std::uint32_t word = word_of(rows + row * bytes, bytes, w);
      words[row * width + w] = word;
      counts[row] += std::popcount(word);
    }
  }
}

}  // namespace tonari
