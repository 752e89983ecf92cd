// The lanes of a warp, played by vector registers: W rows go side by side, one value of each in a vector of 64 bytes.
//
//   W = 16 rows with 32-bit keys, 8 with 64-bit ones, on every instruction set: one, two or four registers.
//   Queues are arrays of vectors, [position][lane], keys and indices apart; masks stand for divergence.
//
// tang2015, section V, names such units as future work.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "select/keys.hpp"

namespace tonari {
namespace {

#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

template <class Key>
constexpr int kWidth = 64 / static_cast<int>(sizeof(Key));

// Index of an entry that does not exist; its key is kLastKey, so that it comes after all that do.
constexpr std::int32_t kNoIndex = std::numeric_limits<std::int32_t>::max();

// A register, or two halves: nothing in it is an array, so that compilers see registers throughout.
template <class Key, int BYTES = 64>
struct Vec {
  Vec<Key, BYTES / 2> first, second;
};
template <class Key>
struct Vec<Key, kRegisterBytes> {
  typedef Key Part __attribute__((vector_size(kRegisterBytes)));
  typedef Key Stored __attribute__((vector_size(kRegisterBytes), aligned(alignof(Key)), may_alias));
  Part part;
};
template <class Key>
using Part = typename Vec<Key, kRegisterBytes>::Part;

template <class Key, int BYTES = 64>
constexpr int kLanesOf = BYTES / static_cast<int>(sizeof(Key));

template <class Key>
[[gnu::always_inline]] inline Part<Key> load_part(const Key* from) {
  return *reinterpret_cast<const typename Vec<Key, kRegisterBytes>::Stored*>(from);
}
template <class Key>
[[gnu::always_inline]] inline void store_part(Key* to, Part<Key> part) {
  *reinterpret_cast<typename Vec<Key, kRegisterBytes>::Stored*>(to) = part;
}

template <int BYTES = 64, class Key>
[[gnu::always_inline]] inline Vec<Key, BYTES> load(const Key* from) {
  if constexpr (BYTES == kRegisterBytes) {
    return {load_part(from)};
  } else {
    return {load<BYTES / 2>(from), load<BYTES / 2>(from + kLanesOf<Key, BYTES / 2>)};
  }
}
template <class Key, int BYTES>
[[gnu::always_inline]] inline void store(Key* to, const Vec<Key, BYTES>& a) {
  if constexpr (BYTES == kRegisterBytes) {
    store_part(to, a.part);
  } else {
    store(to, a.first);
    store(to + kLanesOf<Key, BYTES / 2>, a.second);
  }
}
template <int BYTES = 64, class Key>
[[gnu::always_inline]] inline Vec<Key, BYTES> broadcast(Key x) {
  if constexpr (BYTES == kRegisterBytes) {
    return {Part<Key>{} + x};
  } else {
    return {broadcast<BYTES / 2>(x), broadcast<BYTES / 2>(x)};
  }
}
template <class Key, int BYTES>
[[gnu::always_inline]] inline Vec<Key, BYTES> operator+(const Vec<Key, BYTES>& a, const Vec<Key, BYTES>& b) {
  if constexpr (BYTES == kRegisterBytes) {
    return {a.part + b.part};
  } else {
    return {a.first + b.first, a.second + b.second};
  }
}

#if defined(__AVX512F__)
// One bit per lane. The mask instructions are named, since GCC would move masks to general registers for & and |.
template <class Key, int = 64>
struct Mask {
  __mmask16 lanes;
};
template <class Key>
[[gnu::always_inline]] inline __m512i register_of(const Vec<Key>& a) {
  return reinterpret_cast<__m512i>(a.part);
}
template <class Key>
[[gnu::always_inline]] inline Mask<Key> less(const Vec<Key>& a, const Vec<Key>& b) {
  if constexpr (sizeof(Key) == 4) return {_mm512_cmplt_epi32_mask(register_of(a), register_of(b))};
  if constexpr (sizeof(Key) == 8) return {_mm512_cmplt_epi64_mask(register_of(a), register_of(b))};
}
template <class Key>
[[gnu::always_inline]] inline Mask<Key> same(const Vec<Key>& a, const Vec<Key>& b) {
  if constexpr (sizeof(Key) == 4) return {_mm512_cmpeq_epi32_mask(register_of(a), register_of(b))};
  if constexpr (sizeof(Key) == 8) return {_mm512_cmpeq_epi64_mask(register_of(a), register_of(b))};
}
template <class Key>
[[gnu::always_inline]] inline Vec<Key> choose(Mask<Key> which, const Vec<Key>& yes, const Vec<Key>& no) {
  const __m512i taken = register_of(yes), left = register_of(no);
  if constexpr (sizeof(Key) == 4) {
    return {reinterpret_cast<Part<Key>>(_mm512_mask_blend_epi32(which.lanes, left, taken))};
  } else {
    return {reinterpret_cast<Part<Key>>(_mm512_mask_blend_epi64(static_cast<__mmask8>(which.lanes), left, taken))};
  }
}
template <class Key>
[[gnu::always_inline]] inline Mask<Key> operator&(Mask<Key> a, Mask<Key> b) {
  return {_kand_mask16(a.lanes, b.lanes)};
}
template <class Key>
[[gnu::always_inline]] inline Mask<Key> operator|(Mask<Key> a, Mask<Key> b) {
  return {_kor_mask16(a.lanes, b.lanes)};
}
template <class Key>
[[gnu::always_inline]] inline std::uint32_t bits_of(Mask<Key> mask) {
  return mask.lanes;
}
template <class Key>
[[gnu::always_inline]] inline Mask<Key> mask_of(std::uint32_t bits) {
  return {static_cast<__mmask16>(bits)};
}
#else
// All bits of a lane are set or none.
template <class Key, int BYTES = 64>
using Mask = Vec<Key, BYTES>;

template <class Key, int BYTES>
[[gnu::always_inline]] inline Mask<Key, BYTES> less(const Vec<Key, BYTES>& a, const Vec<Key, BYTES>& b) {
  if constexpr (BYTES == kRegisterBytes) {
    return {a.part < b.part};
  } else {
    return {less(a.first, b.first), less(a.second, b.second)};
  }
}
template <class Key, int BYTES>
[[gnu::always_inline]] inline Mask<Key, BYTES> same(const Vec<Key, BYTES>& a, const Vec<Key, BYTES>& b) {
  if constexpr (BYTES == kRegisterBytes) {
    return {a.part == b.part};
  } else {
    return {same(a.first, b.first), same(a.second, b.second)};
  }
}
template <class Key, int BYTES>
[[gnu::always_inline]] inline Vec<Key, BYTES> choose(const Mask<Key, BYTES>& which, const Vec<Key, BYTES>& yes,
                                                     const Vec<Key, BYTES>& no) {
  if constexpr (BYTES == kRegisterBytes) {
    return {(which.part & yes.part) | (~which.part & no.part)};
  } else {
    return {choose(which.first, yes.first, no.first), choose(which.second, yes.second, no.second)};
  }
}
template <class Key, int BYTES>
[[gnu::always_inline]] inline Mask<Key, BYTES> operator&(const Mask<Key, BYTES>& a, const Mask<Key, BYTES>& b) {
  if constexpr (BYTES == kRegisterBytes) {
    return {a.part & b.part};
  } else {
    return {a.first & b.first, a.second & b.second};
  }
}
template <class Key, int BYTES>
[[gnu::always_inline]] inline Mask<Key, BYTES> operator|(const Mask<Key, BYTES>& a, const Mask<Key, BYTES>& b) {
  if constexpr (BYTES == kRegisterBytes) {
    return {a.part | b.part};
  } else {
    return {a.first | b.first, a.second | b.second};
  }
}
template <class Key, int BYTES>
[[gnu::always_inline]] inline std::uint32_t bits_of(const Mask<Key, BYTES>& mask) {
  if constexpr (BYTES > kRegisterBytes) {
    return bits_of(mask.first) | bits_of(mask.second) << kLanesOf<Key, BYTES / 2>;
#if defined(__AVX2__)
  } else if constexpr (sizeof(Key) == 4) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(mask.part)));
  } else {
    return static_cast<std::uint32_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(mask.part)));
#elif defined(__SSE2__)
  } else if constexpr (sizeof(Key) == 4) {
    return static_cast<std::uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(mask.part)));
  } else {
    return static_cast<std::uint32_t>(_mm_movemask_pd(reinterpret_cast<__m128d>(mask.part)));
#else
  } else {
    std::uint32_t bits = 0;
    for (int i = 0; i < kLanesOf<Key, BYTES>; ++i) bits |= static_cast<std::uint32_t>(mask.part[i] & 1) << i;
    return bits;
#endif
  }
}
template <class Key, int BYTES = 64>
[[gnu::always_inline]] inline Mask<Key, BYTES> mask_of(std::uint32_t bits) {
  if constexpr (BYTES == kRegisterBytes) {
    Part<Key> bit;
    for (int i = 0; i < kLanesOf<Key, BYTES>; ++i) bit[i] = Key{1} << i;
    return {(bit & static_cast<Key>(bits)) == bit};
  } else {
    return {mask_of<Key, BYTES / 2>(bits), mask_of<Key, BYTES / 2>(bits >> kLanesOf<Key, BYTES / 2>)};
  }
}
#endif

template <class Key>
[[gnu::always_inline]] inline bool any(const Mask<Key>& mask) {
  return bits_of(mask) != 0;
}

// One (key, index) per lane.
template <class Key, int BYTES = 64>
struct Entries {
  Vec<Key, BYTES> key, index;
};
template <class Key>
[[gnu::always_inline]] inline Entries<Key> no_entries() {
  return {broadcast(kLastKey<Key>), broadcast(Key{kNoIndex})};
}
template <class Key, int BYTES>
[[gnu::always_inline]] inline Mask<Key, BYTES> before(const Entries<Key, BYTES>& a, const Entries<Key, BYTES>& b) {
  return less(a.key, b.key) | (same(a.key, b.key) & less(a.index, b.index));
}
template <class Key, int BYTES>
[[gnu::always_inline]] inline Entries<Key, BYTES> choose(const Mask<Key, BYTES>& which, const Entries<Key, BYTES>& yes,
                                                         const Entries<Key, BYTES>& no) {
  return {choose(which, yes.key, no.key), choose(which, yes.index, no.index)};
}

// One more write, by each lane of the mask.
template <bool COUNT, class Key, int BYTES>
[[gnu::always_inline]] inline void count_updates(std::int64_t* updates, std::int64_t position,
                                                 const Mask<Key, BYTES>& lanes) {
  if constexpr (COUNT) updates[position] += std::popcount(bits_of(lanes));
}

template <int FROM, class Part, std::size_t... I>
[[gnu::always_inline]] inline Part interleave(Part a, Part b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (FROM + I / 2 + (I % 2) * sizeof...(I))...);
}

// Transposes a square tile of registers, and stores it in columns: registers h and h + R/2 are interleaved, log2(R)
// times, and each time the top bits of register and lane change places.
template <class Key, int STEP = 1>
[[gnu::always_inline]] inline void transpose_tile(const Part<Key> (&tile)[kLanesOf<Key, kRegisterBytes>],
                                                  Key* columns) {
  constexpr int R = kLanesOf<Key, kRegisterBytes>;
  if constexpr (STEP == R) {
#pragma GCC unroll 16
    for (int c = 0; c < R; ++c) store_part(columns + c * kWidth<Key>, tile[c]);
  } else {
    constexpr auto lanes = std::make_index_sequence<R>();
    Part<Key> next[R];
#pragma GCC unroll 8
    for (int h = 0; h < R / 2; ++h) {
      next[2 * h] = interleave<0>(tile[h], tile[h + R / 2], lanes);
      next[2 * h + 1] = interleave<R / 2>(tile[h], tile[h + R / 2], lanes);
    }
    transpose_tile<Key, 2 * STEP>(next, columns);
  }
}

// columns[c * W + lane] = rows[lane * stride + c] for W columns.
template <class Key>
void transpose(const Key* rows, std::int64_t stride, Key* columns) {
  constexpr int R = kLanesOf<Key, kRegisterBytes>;
  for (int down = 0; down < kWidth<Key>; down += R) {
    for (int right = 0; right < kWidth<Key>; right += R) {
      Part<Key> tile[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) tile[r] = load_part(rows + (down + r) * stride + right);
      transpose_tile<Key>(tile, columns + right * kWidth<Key> + down);
    }
  }
}

}  // namespace
}  // namespace tonari
