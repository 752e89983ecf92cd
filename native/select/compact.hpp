// Compaction: entries below a limit are packed together, in their order (the ballot and popcount of komarov2014,
// "GPU-Based Quick Multi-Select", which AVX-512 has as one instruction). Keys and columns lie in arrays of their own.
//
//   key      5 4 7 4 1 4     limit 4, cut 3      taken  4 1      rest  5 7 4 4
//   column   0 1 2 3 4 5                                1 4            0 2 3 5
//
// The limit is a (key, column) pair, though columns are never compared: they ascend, so that of entries with the
// limit's key those before a certain position, the cut, are no larger and all others are.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "select/keys.hpp"

namespace tonari {
namespace {

// Outputs are written a register at a time: they need this much room beyond what they receive.
constexpr std::int64_t kSpill = 16;

#if defined(__AVX512F__)

// One register of keys, and one of as many columns.
template <class Key>
struct Ballot;

template <>
struct Ballot<std::int32_t> {
  static constexpr int lanes = 16;
  using Mask = __mmask16;
  __m512i keys, columns;
  static Ballot load(const std::int32_t* keys, const std::int32_t* columns, Mask real) {
    return {_mm512_maskz_loadu_epi32(real, keys), _mm512_maskz_loadu_epi32(real, columns)};
  }
  static Ballot load(const std::int32_t* keys, std::int32_t first, Mask real) {
    return {_mm512_maskz_loadu_epi32(real, keys),
            _mm512_add_epi32(_mm512_set1_epi32(first),
                             _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))};
  }
  Mask under(std::int32_t limit, Mask real, Mask equal) const {
    const __m512i bound = _mm512_set1_epi32(limit);
    return _mm512_mask_cmplt_epi32_mask(real, keys, bound) | _mm512_mask_cmpeq_epi32_mask(equal, keys, bound);
  }
  void pack(Mask which, std::int32_t* to_keys, std::int32_t* to_columns) const {
    _mm512_storeu_si512(to_keys, _mm512_maskz_compress_epi32(which, keys));
    _mm512_storeu_si512(to_columns, _mm512_maskz_compress_epi32(which, columns));
  }
};

template <>
struct Ballot<std::int64_t> {
  static constexpr int lanes = 8;
  using Mask = __mmask8;
  __m512i keys;
  __m256i columns;
  static Ballot load(const std::int64_t* keys, const std::int32_t* columns, Mask real) {
    return {_mm512_maskz_loadu_epi64(real, keys), _mm256_maskz_loadu_epi32(real, columns)};
  }
  static Ballot load(const std::int64_t* keys, std::int32_t first, Mask real) {
    return {_mm512_maskz_loadu_epi64(real, keys),
            _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))};
  }
  Mask under(std::int64_t limit, Mask real, Mask equal) const {
    const __m512i bound = _mm512_set1_epi64(limit);
    return _mm512_mask_cmplt_epi64_mask(real, keys, bound) | _mm512_mask_cmpeq_epi64_mask(equal, keys, bound);
  }
  void pack(Mask which, std::int64_t* to_keys, std::int32_t* to_columns) const {
    _mm512_storeu_si512(to_keys, _mm512_maskz_compress_epi64(which, keys));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to_columns), _mm256_maskz_compress_epi32(which, columns));
  }
};

#endif

// Columns: those given, or counted from the first.
inline const std::int32_t* column_at(const std::int32_t* columns, std::int64_t i) { return columns + i; }
inline std::int32_t column_at(std::int32_t first, std::int64_t i) { return first + static_cast<std::int32_t>(i); }
inline std::int32_t read_column(const std::int32_t* column) { return *column; }
inline std::int32_t read_column(std::int32_t column) { return column; }

// Packs what lies below the limit, and at it before position `cut`, to `taken`, and with SPLIT the others to `rest`.
// Returns how many were taken. Either output may be the input itself. `columns` is an array or the first column.
template <bool SPLIT, class Key, class Columns>
std::int64_t compact(Key limit, std::int64_t cut, const Key* keys, Columns columns, std::int64_t count, Key* taken_keys,
                     std::int32_t* taken_columns, Key* rest_keys = nullptr, std::int32_t* rest_columns = nullptr) {
  std::int64_t taken = 0;
#if defined(__AVX512F__)
  using B = Ballot<Key>;
  using Mask = typename B::Mask;
  const auto first_lanes = [](std::int64_t lanes) {
    return static_cast<Mask>(lanes >= B::lanes ? -1 : lanes <= 0 ? 0 : (1 << lanes) - 1);
  };
  const auto pack = [&](std::int64_t i, Mask real, Mask equal) {
    const B loaded = B::load(keys + i, column_at(columns, i), real);
    const Mask under = loaded.under(limit, real, equal);
    loaded.pack(under, taken_keys + taken, taken_columns + taken);
    if constexpr (SPLIT) {
      loaded.pack(static_cast<Mask>(real & ~under), rest_keys + (i - taken), rest_columns + (i - taken));
    }
    taken += __builtin_popcount(under);
  };
  constexpr auto all = static_cast<Mask>(-1), none = Mask{0};
  const std::int64_t before = std::min(cut, count);
  std::int64_t i = 0;
  for (; i + B::lanes <= before; i += B::lanes) pack(i, all, all);
  if (i < before) pack(i, first_lanes(count - i), first_lanes(before - i)), i += B::lanes;
  for (; i + B::lanes <= count; i += B::lanes) pack(i, all, none);
  if (i < count) pack(i, first_lanes(count - i), none);
#else
  for (std::int64_t i = 0; i < count; ++i) {  // without branches: half of them would be guessed wrong
    const Key key = keys[i];
    const std::int32_t column = read_column(column_at(columns, i));
    taken_keys[taken] = key;
    taken_columns[taken] = column;
    if constexpr (SPLIT) {
      rest_keys[i - taken] = key;
      rest_columns[i - taken] = column;
    }
    taken += (key < limit) | ((key == limit) & (i < cut));
  }
#endif
  return taken;
}

}  // namespace
}  // namespace tonari
