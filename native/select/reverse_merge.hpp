// Reverse Bitonic Merge (tang2015 III-C, figure 2b): two descending halves of s positions become 2s descending ones.
//
//   first step     position i with 2s - 1 - i     (the original bitonic merge has i + s, and one half ascending)
//   then           half-cleaners of distance s/2, s/4, ..., 1
//
// W lanes merge at once. S steps at a time are done on 2^S positions in registers: half-cleaners of distances 2^(S-1)
// q, ..., q only compare the positions i + t q.
#pragma once

#include "select/lanes.hpp"

namespace tonari {
namespace {

// The keys and indices of eight positions take 16 of 32 registers; those of four take 8 of 16.
constexpr int kMergeSteps = Target::registers == 32 ? 3 : 2;

// STEPS steps on the positions at[0] < at[1] < ..., one register of lanes after the other. The first step crosses if
// CROSS. If MASKED, lanes outside of `who` stay as they are.
template <int STEPS, bool CROSS, bool MASKED, bool COUNT, class Key, int N>
[[gnu::always_inline]] inline void merge_some(Key* keys, Key* indices, const std::int64_t (&at)[1 << STEPS],
                                              const Mask<sizeof(Key), N>& who, std::int64_t* updates) {
  constexpr int size = 1 << STEPS;
  constexpr int W = kWidth<Key>;
  if constexpr (!Mask<sizeof(Key), N>::whole) {
    constexpr int half = N / 2;
    merge_some<STEPS, CROSS, MASKED, COUNT>(keys, indices, at, who.parts.first, updates);
    merge_some<STEPS, CROSS, MASKED, COUNT>(keys + half, indices + half, at, who.parts.second, updates);
  } else {
    Entries<Key, N> some[size];
    for (int t = 0; t < size; ++t) some[t] = Entries<Key, N>::load(keys + at[t] * W, indices + at[t] * W);
#pragma GCC unroll 3
    for (int distance = size / 2; distance > 0; distance /= 2) {
#pragma GCC unroll 8
      for (int t = 0; t < size; ++t) {
        const bool crosses = CROSS && distance == size / 2;
        const int other = crosses ? size - 1 - t : t + distance;
        if (crosses ? t >= other : (t & distance) != 0) continue;
        Mask<sizeof(Key), N> swap = before(some[t], some[other]);
        if constexpr (MASKED) swap = swap & who;
        const Entries<Key, N> larger = choose(swap, some[other], some[t]);
        some[other] = choose(swap, some[t], some[other]);
        some[t] = larger;
        count_updates<COUNT>(updates, at[t], swap);
        count_updates<COUNT>(updates, at[other], swap);
      }
    }
    for (int t = 0; t < size; ++t) some[t].store(keys + at[t] * W, indices + at[t] * W);
  }
}

// Half-cleaners of distances 2^(STEPS-1) q, ..., q on positions [0, size).
template <int STEPS, bool MASKED, bool COUNT, class Key>
void half_clean(Key* keys, Key* indices, std::int64_t size, std::int64_t q, const LaneMask<Key>& who,
                std::int64_t* updates) {
  for (std::int64_t block = 0; block < size; block += q << STEPS) {
    for (std::int64_t i = block; i < block + q; ++i) {
      std::int64_t at[1 << STEPS];
      for (int t = 0; t < 1 << STEPS; ++t) at[t] = i + t * q;
      merge_some<STEPS, false, MASKED, COUNT>(keys, indices, at, who, updates);
    }
  }
}

// The crossing step and STEPS - 1 half-cleaners on positions [0, size); returns the distance of the last one.
template <int STEPS, bool MASKED, bool COUNT, class Key>
std::int64_t cross_clean(Key* keys, Key* indices, std::int64_t size, const LaneMask<Key>& who, std::int64_t* updates) {
  constexpr int half = 1 << (STEPS - 1);
  const std::int64_t q = size >> STEPS;
  for (std::int64_t i = 0; i < q; ++i) {
    std::int64_t at[1 << STEPS];
    for (int t = 0; t < half; ++t) {
      at[t] = i + t * q;
      at[2 * half - 1 - t] = size - 1 - at[t];
    }
    merge_some<STEPS, true, MASKED, COUNT>(keys, indices, at, who, updates);
  }
  return q;
}

// Merges positions [0, size) of two descending halves; size is a power of two, at least 2.
template <bool MASKED, bool COUNT, class Key>
void reverse_merge(Key* keys, Key* indices, std::int64_t size, const LaneMask<Key>& who, std::int64_t* updates) {
  std::int64_t q = 0;  // distance of the last step so far
  if (size >= std::int64_t{1} << kMergeSteps) {
    q = cross_clean<kMergeSteps, MASKED, COUNT>(keys, indices, size, who, updates);
  } else if (size == 4) {
    q = cross_clean<2, MASKED, COUNT>(keys, indices, size, who, updates);
  } else {
    q = cross_clean<1, MASKED, COUNT>(keys, indices, size, who, updates);
  }
  while (q >= std::int64_t{1} << kMergeSteps) {
    q >>= kMergeSteps;
    half_clean<kMergeSteps, MASKED, COUNT>(keys, indices, size, q, who, updates);
  }
  if (q == 4) half_clean<2, MASKED, COUNT>(keys, indices, size, 1, who, updates);
  if (q == 2) half_clean<1, MASKED, COUNT>(keys, indices, size, 1, who, updates);
}

// Sorts positions [0, size) descending, all lanes; size is a power of two.
template <class Key>
void sort_descending(Key* keys, Key* indices, std::int64_t size) {
  for (std::int64_t part = 2; part <= size; part *= 2) {
    for (std::int64_t at = 0; at < size; at += part) {
      reverse_merge<false, false>(keys + at * kWidth<Key>, indices + at * kWidth<Key>, part, LaneMask<Key>{}, nullptr);
    }
  }
}

}  // namespace
}  // namespace tonari
