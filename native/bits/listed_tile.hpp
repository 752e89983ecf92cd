// The bits of pairs, eight bytes at a time. With POPCNT, which every processor with AVX2 has, 128 bytes take 16 counts.
#pragma once

#include <bit>
#include <cstring>

#include "bits/listed.hpp"

namespace tonari {
namespace {

inline std::uint64_t word_at(const std::uint8_t* row, std::int64_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, row, static_cast<std::size_t>(size));
  return word;
}

constexpr std::int64_t kAhead = 8;  // points whose rows are prefetched, because most are not in a cache

inline void ask_for(const std::uint8_t* row, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

template <bool EITHER>
void count_pairs(const std::uint8_t* query, const std::uint8_t* points, std::int64_t bytes, const std::int64_t* ids,
                 std::int64_t count, std::int64_t* differing, std::int64_t* either) {
  const std::int64_t whole = bytes / 8 * 8;
  for (std::int64_t j = 0; j < count; ++j) {
    const std::uint8_t* const point = points + ids[j] * bytes;
    if (j + kAhead < count) ask_for(points + ids[j + kAhead] * bytes, bytes);
    std::int64_t apart = 0, any = 0;
    const auto add = [&](std::uint64_t q, std::uint64_t x) {
      apart += std::popcount(q ^ x);
      if constexpr (EITHER) any += std::popcount(q | x);
    };
    for (std::int64_t i = 0; i < whole; i += 8) add(word_at(query + i, 8), word_at(point + i, 8));
    if (whole < bytes) add(word_at(query + whole, bytes - whole), word_at(point + whole, bytes - whole));
    differing[j] = apart;
    if constexpr (EITHER) either[j] = any;
  }
}

inline void count_bit_pairs(const std::uint8_t* query, const std::uint8_t* points, std::int64_t bytes,
                            const std::int64_t* ids, std::int64_t count, std::int64_t* differing,
                            std::int64_t* either) {
  either != nullptr ? count_pairs<true>(query, points, bytes, ids, count, differing, either)
                    : count_pairs<false>(query, points, bytes, ids, count, differing, either);
}

}  // namespace
}  // namespace tonari
