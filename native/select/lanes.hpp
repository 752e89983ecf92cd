// Vector registers in place of a warp: W rows are processed side by side, one value of each in a vector of 64 bytes.
//
//   W = 16 rows with 32-bit keys, 8 with 64-bit ones, on every instruction set: one, two or four registers.
//   Queues are arrays of vectors, [position][lane], keys and indices apart; masks replace divergence.
//
// tang2015, section V, names such units as future work.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "select/keys.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

template <class Key>
constexpr int kWidth = 64 / static_cast<int>(sizeof(Key));

// The types of a value for each row, and of a truth value for each row.
template <class Key>
using Lanes = Vec<Key, kWidth<Key>>;
template <class Key>
using LaneMask = Mask<sizeof(Key), kWidth<Key>>;

// The index of an entry that does not exist; its key is kLastKey, so that it comes after all entries that do.
constexpr std::int32_t kNoIndex = std::numeric_limits<std::int32_t>::max();

// One entry, a (key, index) pair, per lane.
template <class Key, int N = kWidth<Key>>
struct Entries {
  using Truth = Mask<sizeof(Key), N>;
  Vec<Key, N> key, index;

  Entries() = default;
  [[gnu::always_inline]] Entries(const Vec<Key, N>& of_key, const Vec<Key, N>& of_index)
      : key(of_key), index(of_index) {}
  // Copies member by member, because GCC would copy the whole struct through memory.
  [[gnu::always_inline]] Entries(const Entries& other) : key(other.key), index(other.index) {}
  [[gnu::always_inline]] Entries& operator=(const Entries& other) {
    key = other.key;
    index = other.index;
    return *this;
  }

  [[gnu::always_inline]] static Entries load(const Key* keys, const Key* indices) {
    return {Vec<Key, N>::load(keys), Vec<Key, N>::load(indices)};
  }
  [[gnu::always_inline]] void store(Key* keys, Key* indices) const {
    key.store(keys);
    index.store(indices);
  }
  [[gnu::always_inline]] friend Truth before(const Entries& a, const Entries& b) {
    return (a.key < b.key) | less_among(a.key == b.key, a.index, b.index);
  }
  [[gnu::always_inline]] friend Entries choose(const Truth& which, const Entries& yes, const Entries& no) {
    return {choose(which, yes.key, no.key), choose(which, yes.index, no.index)};
  }
};
template <class Key>
[[gnu::always_inline]] inline Entries<Key> no_entries() {
  return {kLastKey<Key>, Key{kNoIndex}};
}

// Counts a write by each lane of the mask.
template <bool COUNT, int BYTES, int N>
[[gnu::always_inline]] inline void count_updates(std::int64_t* updates, std::int64_t position,
                                                 const Mask<BYTES, N>& lanes) {
  if constexpr (COUNT) updates[position] += std::popcount(bits(lanes));
}

// Transposes a square tile of registers, and stores it in columns. Registers h and h + R/2 are interleaved log2(R)
// times; each time the top bits of the register and lane numbers are exchanged.
template <class Key, int STEP = 1>
[[gnu::always_inline]] inline void transpose_tile(const Register<Key> (&tile)[kRegisterLanes<Key>], Key* columns) {
  constexpr int R = kRegisterLanes<Key>;
  if constexpr (STEP == R) {
#pragma GCC unroll 16
    for (int c = 0; c < R; ++c) tile[c].store(columns + c * kWidth<Key>);
  } else {
    Register<Key> next[R];
#pragma GCC unroll 8
    for (int h = 0; h < R / 2; ++h) {
      next[2 * h] = interleave<0>(tile[h], tile[h + R / 2]);
      next[2 * h + 1] = interleave<1>(tile[h], tile[h + R / 2]);
    }
    transpose_tile<Key, 2 * STEP>(next, columns);
  }
}

// columns[c * W + lane] = rows[lane * stride + c] for W columns.
template <class Key>
void transpose(const Key* rows, std::int64_t stride, Key* columns) {
  constexpr int R = kRegisterLanes<Key>;
  for (int down = 0; down < kWidth<Key>; down += R) {
    for (int right = 0; right < kWidth<Key>; right += R) {
      Register<Key> tile[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) tile[r] = Register<Key>::load(rows + (down + r) * stride + right);
      transpose_tile<Key>(tile, columns + right * kWidth<Key> + down);
    }
  }
}

}  // namespace
}  // namespace tonari
