// Finds the k nearest of the points that are listed for each query, directly from the rows of bits.
#pragma once

#include <cstdint>

#include "bits/value.hpp"
#include "core/cpu.hpp"

namespace tonari {

struct BitLists {
  bool jaccard = false;
  const std::uint8_t* queries = nullptr;
  const std::uint8_t* points = nullptr;
  std::int64_t bytes = 0;  // of a row
  std::int64_t k = 0;
  const std::int64_t* self_ids = nullptr;  // null, or for each query a point that it must not find
  const std::int64_t* listed = nullptr;    // query i has listed[begins[i]] ... listed[ends[i] - 1]
  const std::int64_t* begins = nullptr;
  const std::int64_t* ends = nullptr;
};

// For queries [begin, end): writes k values and indices of each, nearest first; inf and -1 where fewer are listed.
template <class Index>
void search_listed_bits(Isa isa, const BitLists& lists, std::int64_t begin, std::int64_t end, float* distances,
                        Index* indices);

// For x = points[ids[j]]: differing[j] = |q ^ x|, and either[j] = |q | x| unless `either` is null.
using BitPairs = void (*)(const std::uint8_t* query, const std::uint8_t* points, std::int64_t bytes,
                          const std::int64_t* ids, std::int64_t count, std::int64_t* differing, std::int64_t* either);

void bit_pairs_generic(const std::uint8_t*, const std::uint8_t*, std::int64_t, const std::int64_t*, std::int64_t,
                       std::int64_t*, std::int64_t*);
#if TONARI_X86
void bit_pairs_avx2(const std::uint8_t*, const std::uint8_t*, std::int64_t, const std::int64_t*, std::int64_t,
                    std::int64_t*, std::int64_t*);
#endif

}  // namespace tonari
