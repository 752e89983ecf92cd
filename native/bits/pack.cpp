#include "bits/pack.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tonari {
namespace {

// Word w of a row.
std::uint32_t word_of(const std::uint8_t* row, std::int64_t bytes, std::int64_t w) {
  std::uint32_t word = 0;
  std::memcpy(&word, row + 4 * w, static_cast<std::size_t>(std::min<std::int64_t>(4, bytes - 4 * w)));
  return word;
}

}  // namespace

void pack_bits(const std::uint8_t* rows, std::int64_t n, std::int64_t bytes, std::uint32_t* words,
               std::int32_t* counts) {
  const std::int64_t width = bit_words(bytes);
  for (std::int64_t group = 0; group < bit_groups(n); ++group) {
    std::uint32_t* const packed = words + group * width * kBitLanes;
    for (int lane = 0; lane < kBitLanes; ++lane) {
      const std::int64_t point = group * kBitLanes + lane;
      std::int32_t count = 0;
      for (std::int64_t w = 0; w < width; ++w) {
        const std::uint32_t word = point < n ? word_of(rows + point * bytes, bytes, w) : 0;
        packed[w * kBitLanes + lane] = word;
        count += std::popcount(word);
      }
      counts[point] = count;
    }
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
