// The tiles of AMX: 8 registers of 16 rows of 64 bytes. Internal linkage: for files compiled for AMX only.
#pragma once

#include <cstdint>

namespace tonari {
namespace {

constexpr int kTileRows = 16, kTileBytes = 1024;

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

class TileScope {  // lets the thread use tiles while this object exists
 public:
  TileScope() {
    TileConfig config;
    for (int t = 0; t < 8; ++t) config.bytes_per_row[t] = 64, config.rows[t] = kTileRows;
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  explicit TileScope(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
  ~TileScope() { asm volatile("tilerelease"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

// Instructions on tiles, whose numbers are part of the instruction. GCC's headers cannot be used: up to GCC 13 they do
// not tell the compiler that memory is read (its bug 114098), so it may drop earlier stores to this memory.
template <int TILE>
inline void zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(TILE));
}
template <int TILE>
inline void load(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(TILE) : "memory");
}
template <int TILE>
inline void store(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(TILE) : "memory");
}
template <bool INT8, int SUMS, int POINTS, int QUERIES>
inline void add_products() {
  if constexpr (INT8) {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(SUMS), "i"(POINTS), "i"(QUERIES));
  } else {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(SUMS), "i"(POINTS), "i"(QUERIES));
  }
}

}  // namespace
}  // namespace tonari
