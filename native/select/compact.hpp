// Compaction: packs the entries below a limit together, in their order (the ballot and popcount of komarov2014,
// "GPU-Based Quick Multi-Select", which AVX-512 has as one instruction). Keys and columns are in separate arrays.
//
//   key      5 4 7 4 1 4     limit 4, cut 3      taken  4 1      rest  5 7 4 4
//   column   0 1 2 3 4 5                                1 4            0 2 3 5
//
// The limit is a (key, column) pair, but columns need not be compared: they ascend, so of the entries with the limit's
// key exactly those before a certain position, the cut, are not larger.
#pragma once

#include <algorithm>
#include <cstdint>

#include "select/keys.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

// Outputs are written a register at a time, so they need room for this many more entries than they receive.
constexpr std::int64_t kSpill = 16;

// Columns from the i-th on: of an array of columns, or of consecutive columns that are given by the first.
inline const std::int32_t* column_at(const std::int32_t* columns, std::int64_t i) { return columns + i; }
inline std::int32_t column_at(std::int32_t first, std::int64_t i) { return first + static_cast<std::int32_t>(i); }
inline std::int32_t read_column(const std::int32_t* column) { return *column; }
inline std::int32_t read_column(std::int32_t column) { return column; }
template <int N>
Vec<std::int32_t, N> read_columns(const std::int32_t* columns, std::int64_t count) {
  return Vec<std::int32_t, N>::load_first(columns, count);
}
template <int N>
Vec<std::int32_t, N> read_columns(std::int32_t first, std::int64_t) {
  return Vec<std::int32_t, N>::numbers() + first;
}

// Packs into `taken` the entries below the limit, and the entries equal to it before position `cut`; if SPLIT, packs
// the others into `rest`. Returns the number of taken entries. Either output may be the input itself. `columns` is an
// array or the first column.
template <bool SPLIT, class Key, class Columns>
std::int64_t compact(Key limit, std::int64_t cut, const Key* keys, Columns columns, std::int64_t count, Key* taken_keys,
                     std::int32_t* taken_columns, Key* rest_keys = nullptr, std::int32_t* rest_columns = nullptr) {
  std::int64_t taken = 0;
  if constexpr (kCompresses) {
    constexpr int W = kRegisterLanes<Key>;
    constexpr std::uint32_t all = (1u << W) - 1, none = 0;
    const auto first_lanes = [](std::int64_t lanes) {
      return lanes >= W ? all : lanes <= 0 ? none : (1u << lanes) - 1;
    };
    const auto pack = [&](std::int64_t i, std::int64_t lanes, std::uint32_t equal) {
      const auto loaded = Register<Key>::load_first(keys + i, lanes);
      const auto loaded_columns = read_columns<W>(column_at(columns, i), lanes);
      const std::uint32_t real = first_lanes(lanes);
      const std::uint32_t under = (bits(loaded < limit) & real) | (bits(loaded == limit) & equal);
      compress(taken_keys + taken, under, loaded);
      compress(taken_columns + taken, under, loaded_columns);
      if constexpr (SPLIT) {
        compress(rest_keys + (i - taken), real & ~under, loaded);
        compress(rest_columns + (i - taken), real & ~under, loaded_columns);
      }
      taken += __builtin_popcount(under);
    };
    const std::int64_t before = std::min(cut, count);
    std::int64_t i = 0;
    for (; i + W <= before; i += W) pack(i, W, all);
    if (i < before) pack(i, std::min<std::int64_t>(count - i, W), first_lanes(before - i)), i += W;
    for (; i + W <= count; i += W) pack(i, W, none);
    if (i < count) pack(i, count - i, none);
  } else {
    for (std::int64_t i = 0; i < count; ++i) {  // without branches, since half of them would be mispredicted
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
  }
  return taken;
}

}  // namespace
}  // namespace tonari
