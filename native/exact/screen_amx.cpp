// The screen on AMX tiles: bfloat16 (512 products per cycle) and int8 (twice as many, with exact sums).
//
// One step multiplies a 16 x 64-byte tile of points with a 16 x 64-byte tile of queries into 16 x 16 sums:
//     C[point][query] += A[point][run] * B[run][query]
// Registers: 4 tiles of sums (32 points x 32 queries), 2 of points, 2 of queries: 4 loads for 4 products.
//
//   for panel of groups (32 points each), whose tiles stay in the L1 cache:
//     for chunk of runs:                              one chunk, unless d is large: then sums wait in memory
//       for tile of 32 queries:
//         for group in panel:
//           for run in chunk: 4 loads, 4 products     and, between them, a few rows of the previous block:
//                                                     score = low + sum, minimum, compare
// A product of tiles takes 16 cycles, in which vector units judge the previous block, so that neither unit waits.
#include <cstring>

#include "core/room.hpp"
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"

namespace tonari {
namespace {

constexpr int kTileRows = 16, kTileBytes = 1024;
constexpr int kPoints = 32, kQueries = 32, kSums = kPoints * kQueries;
// The L1 cache (48 KB) holds a panel of points (16 KB), the current tile of queries (14 KB at most) and a block of sums
// (4 KB). 13 runs and 24 tiles would not fit.
constexpr int kChunkRuns = 7;
constexpr int kPanelTiles = 16;

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

class TileScope {  // the thread may use tiles while this object exists
 public:
  TileScope() {
    TileConfig config;
    for (int t = 0; t < 8; ++t) config.bytes_per_row[t] = 64, config.rows[t] = kTileRows;
    _tile_loadconfig(&config);
  }
  ~TileScope() { _tile_release(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

// The sums of a block, in the layout of the tiles, and the place of the block.
struct alignas(64) Block {
  std::int32_t sums[kSums];
  std::int64_t group;
  int tile;
};

// A finished block's points are judged eight at a time, between the products of the next block. All scores of eight
// points stay in registers, and after a survivor is found, only the points of its part are judged, and not all 32.
constexpr int kPart = 8, kParts = kPoints / kPart;

template <bool INT8, bool BOTH>
class Epilogue {
 public:
  explicit Epilogue(const Task& task) : task_(task) {}

  void begin(const Block* block) {
    block_ = block;
    part_ = 0;
    const std::int64_t group = block->group, lane = static_cast<std::int64_t>(block->tile) * kQueries;
    const Floats e1 = task_.points.group_error_query[group], e2 = task_.points.group_error_rest[group];
    for (int v = 0; v < 2; ++v) {
      const Floats rest = Floats::load(task_.queries.rest + lane + v * 16) * e2;
      bound_[v] = fma(Floats::load(task_.queries.norm + lane + v * 16), e1, rest);
      if constexpr (INT8) {
        factor_[v] = -task_.points.group_scale[group] * Floats::load(task_.queries.step + lane + v * 16);
      }
      if constexpr (BOTH) query_low_[v] = Floats::load(task_.reverse.low + lane + v * 16);
    }
    if constexpr (BOTH) reverse_limits(task_, block->tile, group * kPoints, kPoints, limits_);
  }

  // Judges the parts of the previous block up to `end`, if there is such a block.
  void advance(int end) {
    if (block_ == nullptr) return;
    for (; part_ < end; ++part_) judge_if_needed();
    if (part_ == kParts) block_ = nullptr;
  }

 private:
  Floats score(int row, int v) const {
    const auto sums = Int32s::load(block_->sums + row * kQueries + v * 16);
    const Floats low = task_.points.low[block_->group * kPoints + row];
    if constexpr (INT8) {
      return fma(convert<float>(sums), factor_[v], low);
    } else {
      return as<float>(sums) + low;
    }
  }

  void judge_if_needed() {
    const int first = part_ * kPart;
    Floats least[2];
    std::uint32_t reverse = 0;
#pragma GCC unroll 8
    for (int p = 0; p < kPart; ++p) {
      for (int v = 0; v < 2; ++v) {
        const Floats s = score(first + p, v);
        least[v] = p == 0 ? s : min(least[v], s);
        if constexpr (BOTH) reverse |= bits(s + query_low_[v] <= limits_[first + p]);
      }
    }
    const float* thresholds = task_.queries.threshold + static_cast<std::int64_t>(block_->tile) * kQueries;
    std::uint64_t lanes = 0;
    for (int v = 0; v < 2; ++v) {
      const Floats lower = least[v] - bound_[v];
      lanes |= std::uint64_t{bits(lower <= load_thresholds(thresholds + v * 16))} << (v * 16);
    }
    if (lanes == 0 && reverse == 0) return;
    if (task_.marks != nullptr) task_.marks[task_.mark(block_->tile, block_->group)] = 1;
    else judge_part(lanes, reverse != 0);
  }

  __attribute__((noinline)) void judge_part(std::uint64_t lanes, bool reverse) const {
    const std::int64_t first = block_->group * kPoints + part_ * kPart;
    const auto scores = [&](int p, int v) { return score(part_ * kPart + p, v); };
    if (lanes != 0) judge<kPart, 2>(task_, block_->tile, first, lanes, scores);
    if constexpr (BOTH) {
      if (reverse) judge_reverse<kPart, 2>(task_, block_->tile, first, scores);
    }
  }

  const Task& task_;
  const Block* block_ = nullptr;
  int part_ = 0;
  Floats bound_[2], factor_[2], query_low_[2];
  alignas(64) float limits_[kPoints];
};

void load_sums(const std::int32_t* sums) {
  constexpr int stride = kQueries * 4;
  _tile_loadd(0, sums, stride);
  _tile_loadd(1, sums + 16, stride);
  _tile_loadd(2, sums + 16 * kQueries, stride);
  _tile_loadd(3, sums + 16 * kQueries + 16, stride);
}

void store_sums(std::int32_t* sums) {
  constexpr int stride = kQueries * 4;
  _tile_stored(0, sums, stride);
  _tile_stored(1, sums + 16, stride);
  _tile_stored(2, sums + 16 * kQueries, stride);
  _tile_stored(3, sums + 16 * kQueries + 16, stride);
}

void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// The compiler accepts only literal tile numbers, so this is a macro instead of a loop over products.
#define TONARI_TILE_PRODUCTS(dot) \
  do {                            \
    dot(0, 4, 6);                 \
    dot(1, 4, 7);                 \
    dot(2, 5, 6);                 \
    dot(3, 5, 7);                 \
  } while (false)

// Prefetches the next panel of points, a few lines at a time, while this one is multiplied. Each panel is used only
// once per block of queries, so without this the tile unit would wait for memory.
class Ahead {
 public:
  explicit Ahead(int query_tiles) : lines_((2 * kTileRows + query_tiles - 1) / query_tiles) {}
  void aim(const std::byte* begin, const std::byte* end) { at_ = begin, end_ = end; }
  void advance() {
    for (int i = 0; i < lines_ && at_ < end_; ++i, at_ += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at_), _MM_HINT_T1);
    }
  }

 private:
  int lines_;
  const std::byte *at_ = nullptr, *end_ = nullptr;
};

template <bool INT8, class BEFORE>
void multiply(const std::byte* a, const std::byte* b, std::int64_t tile_bytes, int runs, BEFORE& before, Ahead& ahead) {
  for (int run = 0; run < runs; ++run) {
    ahead.advance();
    _tile_loadd(4, a + run * kTileBytes, 64);
    _tile_loadd(6, b + run * kTileBytes, 64);
    _tile_loadd(5, a + tile_bytes + run * kTileBytes, 64);
    _tile_loadd(7, b + tile_bytes + run * kTileBytes, 64);
    if constexpr (INT8) {
      TONARI_TILE_PRODUCTS(_tile_dpbssd);
    } else {
      TONARI_TILE_PRODUCTS(_tile_dpbf16ps);
    }
    before.advance((run + 1) * kParts / runs);
  }
}

template <bool INT8, bool BOTH>
void screen_amx_sides(const Task& task) {
  const TileScope tiles;
  const std::byte* points = static_cast<const std::byte*>(task.points.data);
  const std::byte* queries = static_cast<const std::byte*>(task.queries.data);
  const std::int64_t tile_bytes = static_cast<std::int64_t>(task.depth) * kTileBytes;
  const int chunks = (task.depth + kChunkRuns - 1) / kChunkRuns;
  const int chunk_runs = (task.depth + chunks - 1) / chunks;
  const std::int64_t panel = kPanelTiles / (2 * chunk_runs) > 1 ? kPanelTiles / (2 * chunk_runs) : 1;
  Room<std::int32_t> room;  // for a panel's sums between chunks, a few hundred kilobytes
  std::int32_t* waiting = chunks == 1 ? nullptr : room.get(panel * task.queries.tiles * kSums);
  Block block;  // its parts are judged during the next block's products, before it is filled again
  Epilogue<INT8, BOTH> before(task);
  Ahead ahead(task.queries.tiles);

  for (std::int64_t first = task.group_begin; first < task.group_end; first += panel) {
    const std::int64_t last = first + panel < task.group_end ? first + panel : task.group_end;
    const std::int64_t next = last + panel < task.group_end ? last + panel : task.group_end;
    ahead.aim(points + 2 * last * tile_bytes, points + 2 * next * tile_bytes);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int run = chunk * chunk_runs;
      const int runs = run + chunk_runs < task.depth ? chunk_runs : task.depth - run;
      for (int tile = 0; tile < task.queries.tiles; ++tile) {
        const std::byte* b = queries + 2 * tile * tile_bytes + static_cast<std::int64_t>(run) * kTileBytes;
        for (std::int64_t group = first; group < last; ++group) {
          if (!task.visits(tile, group)) continue;
          const std::byte* a = points + 2 * group * tile_bytes + static_cast<std::int64_t>(run) * kTileBytes;
          const std::int64_t place = ((group - first) * task.queries.tiles + tile) * kSums;
          if (chunk == 0) {
            zero_sums();
          } else {
            load_sums(waiting + place);
          }
          multiply<INT8>(a, b, tile_bytes, runs, before, ahead);
          if (chunk + 1 < chunks) {
            store_sums(waiting + place);
          } else {
            block.group = group;
            block.tile = tile;
            store_sums(block.sums);
            before.begin(&block);
          }
        }
      }
    }
  }
  before.advance(kParts);
}

template <bool INT8>
void screen_amx(const Task& task) {
  if (task.reverse.threshold != nullptr) return screen_amx_sides<INT8, true>(task);
  screen_amx_sides<INT8, false>(task);
}

template <bool INT8>
double peak(double seconds) {
  const TileScope tiles;
  alignas(64) std::byte a[kTileBytes], sums[4 * kTileBytes];
  std::memset(a, 1, sizeof a);
  zero_sums();
  _tile_loadd(4, a, 64);
  _tile_loadd(5, a, 64);
  _tile_loadd(6, a, 64);
  _tile_loadd(7, a, 64);
  const double rate = measured_rate(seconds, [&] {
    for (int i = 0; i < 1000; ++i) {
      if constexpr (INT8) {
        TONARI_TILE_PRODUCTS(_tile_dpbssd);
      } else {
        TONARI_TILE_PRODUCTS(_tile_dpbf16ps);
      }
    }
    return 1000.0 * 4 * 2 * 16 * 16 * (INT8 ? 64 : 32);
  });
  store_sums(reinterpret_cast<std::int32_t*>(sums));
  return rate;
}

#undef TONARI_TILE_PRODUCTS

constexpr Layout kLayoutBf16{.point_group = kPoints, .query_tile = kQueries, .run = 32, .tile_rows = kTileRows};
constexpr Layout kLayoutI8{.point_group = kPoints, .query_tile = kQueries, .run = 64, .tile_rows = kTileRows};

constexpr Kernel kKernels[] = {
    {"inner/bfloat16/amx", Precision::bfloat16, Isa::amx, Needs::nothing, kLayoutBf16, screen_amx<false>, peak<false>},
    {"inner/int8/amx", Precision::int8, Isa::amx, Needs::nothing, kLayoutI8, screen_amx<true>, peak<true>}};

}  // namespace

std::span<const Kernel> amx_kernels() { return kKernels; }

}  // namespace tonari
