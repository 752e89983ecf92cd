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
//           for run in chunk: 4 loads, 4 products     and, between them, the sums of the previous block are stored,
//                                                     and the block before that is judged: score = low + sum,
//                                                     minimum, compare
//
// A product of tiles takes 16 cycles. Nothing else may keep the next product waiting:
// - A tile is stored right before its next product. Four stores in a row would fill the processor's queue of stores.
// - A block is judged in portions of two to eight points. The processor looks some hundred instructions ahead, no more.
// - A block is judged after its last store, so that no load waits for a store. Hence two blocks of sums in memory.
// While the tile unit multiplies, only one of two ports computes minima and sums of 16 floats.
#include <cstring>
#include <limits>

#include "core/room.hpp"
#include "exact/peak.hpp"
#include "exact/screen_amx_few.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"
#include "simd/tiles.hpp"

namespace tonari {
namespace {

constexpr int kPoints = 32, kQueries = 32, kSums = kPoints * kQueries;
// The L1 cache (48 KB) holds a panel of points (16 KB), the current tile of queries (16 KB at most) and two blocks of
// sums (8 KB). 13 runs or 24 tiles would not fit, and more chunks would read and write more waiting sums.
constexpr int kChunkRuns = 8;
constexpr int kPanelTiles = 16;

// The sums of a block, in the layout of the tiles, and the place of the block.
struct alignas(64) Block {
  std::int32_t sums[kSums];
  std::int64_t group;
  int tile;
};

// Points are judged in parts of eight. If a part has a survivor, its points are judged one by one.
constexpr int kPart = 8, kParts = kPoints / kPart;

#define TONARI_INLINE inline __attribute__((always_inline))  // all values stay in registers between products

// The results for the points of a part that were judged so far.
struct Part {
  Floats least[2] = {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
  std::uint32_t reverse = 0;
};

template <bool INT8, bool BOTH>
class Epilogue {
 public:
  explicit Epilogue(const Task& task) : task_(task) {}

  // Begins to judge a block; null: none.
  void begin(const Block* block) {
    left_ = block == nullptr ? 0 : kParts;
    if (block == nullptr) return;
    group_ = block->group, tile_ = block->tile;
    sums_ = block->sums, low_ = task_.points.low + group_ * kPoints;
    const std::int64_t lane = static_cast<std::int64_t>(tile_) * kQueries;
    const Floats e1 = task_.points.group_error_query[group_], e2 = task_.points.group_error_rest[group_];
    for (int v = 0; v < 2; ++v) {
      const Floats rest = Floats::load(task_.queries.rest + lane + v * 16) * e2;
      bound_[v] = fma(Floats::load(task_.queries.norm + lane + v * 16), e1, rest);
      if constexpr (INT8) {
        factor_[v] = -task_.points.group_scale[group_] * Floats::load(task_.queries.step + lane + v * 16);
      }
      if constexpr (BOTH) query_low_[v] = Floats::load(task_.reverse.low + lane + v * 16);
    }
    if constexpr (BOTH) reverse_limits(task_, tile_, group_ * kPoints, kPoints, limits_);
  }

  int left() const { return left_; }  // number of parts not yet judged

  // Adds the points [FIRST, LAST) of the next part to it.
  template <int FIRST, int LAST>
  TONARI_INLINE void add(Part& part) const {
    const std::int32_t* sums = sums_;
    const float* low = low_;
#pragma GCC unroll 8
    for (int p = FIRST; p < LAST; ++p) {
      for (int v = 0; v < 2; ++v) {
        const Floats s = score(sums, low, p, v);
        part.least[v] = min(part.least[v], s);
        if constexpr (BOTH) part.reverse |= bits(s + query_low_[v] <= limits_[(kParts - left_) * kPart + p]);
      }
    }
  }

  // Judges the part, whose points have all been added, and goes to the next one.
  TONARI_INLINE void close(Part& part) {
    const float* thresholds = task_.queries.threshold + static_cast<std::int64_t>(tile_) * kQueries;
    std::uint64_t lanes = 0;
    for (int v = 0; v < 2; ++v) {
      const Floats lower = part.least[v] - bound_[v];
      lanes |= std::uint64_t{bits(lower <= load_thresholds(thresholds + v * 16))} << (v * 16);
    }
    if (lanes != 0 || part.reverse != 0) [[unlikely]]
      judge_part(lanes, part.reverse != 0);
    sums_ += kPart * kQueries, low_ += kPart, --left_;
    part = Part{};
  }

  void finish() {
    for (Part part; left_ > 0; close(part)) add<0, kPart>(part);
  }

 private:
  TONARI_INLINE Floats score(const std::int32_t* sums, const float* low, int p, int v) const {
    const auto sum = Int32s::load(sums + p * kQueries + v * 16);
    if constexpr (INT8) {
      return fma(convert<float>(sum), factor_[v], low[p]);
    } else {
      return as<float>(sum) + low[p];
    }
  }

  __attribute__((noinline)) void judge_part(std::uint64_t lanes, bool reverse) const {
    if (task_.marks != nullptr) {
      task_.marks[task_.mark(tile_, group_)] = 1;
      return;
    }
    const std::int64_t first = group_ * kPoints + (kParts - left_) * kPart;
    const auto scores = [&](int p, int v) { return score(sums_, low_, p, v); };
    if (lanes != 0) judge<kPart, 2>(task_, tile_, first, lanes, scores);
    if constexpr (BOTH) {
      if (reverse) judge_reverse<kPart, 2>(task_, tile_, first, scores);
    }
  }

  const Task& task_;
  std::int64_t group_ = 0;
  int tile_ = 0, left_ = 0;
  const std::int32_t* sums_ = nullptr;  // the sums of the next part
  const float* low_ = nullptr;
  Floats bound_[2], factor_[2], query_low_[2];
  alignas(64) float limits_[kPoints];
};

constexpr std::int64_t kSumsStride = kQueries * 4;

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

// Prefetches the terms of each point, all of which a survivor needs.
void prefetch_numbers(const PointsView& points, std::int64_t begin, std::int64_t end) {
  for (const float* numbers : {points.low, points.error_query, points.error_rest, points.error_own}) {
    for (std::int64_t at = begin; at < end; at += 16) {
      _mm_prefetch(reinterpret_cast<const char*>(numbers + at), _MM_HINT_T1);
    }
  }
}

// Where the sums of a block are loaded from (null: zeros), and where those of the block before are stored.
struct Turn {
  const std::int32_t* from;
  std::int32_t* to;
};

// Stores a tile of sums, and loads it for the next block.
template <int TILE>
TONARI_INLINE void turn_tile(const Turn& turn) {
  constexpr int place = TILE / 2 * kTileRows * kQueries + TILE % 2 * 16;
  store<TILE>(turn.to + place, kSumsStride);
  if (turn.from == nullptr) zero<TILE>();
  else load<TILE>(turn.from + place, kSumsStride);
}

// Adds a run's products to a tile of sums, and its share of PARTS parts of the epilogue.
template <bool INT8, bool FIRST, int PARTS, int TILE, class Before>
TONARI_INLINE void multiply_tile(const Turn& turn, Before& before, Part& part) {
  if constexpr (FIRST) turn_tile<TILE>(turn);
  add_products<INT8, TILE, 4 + TILE / 2, 6 + TILE % 2>();
  constexpr int points = 2 * PARTS, begin = TILE * points % kPart;
  if constexpr (points > 0) before.template add<begin, begin + points>(part);
  if constexpr (points > 0 && begin + points == kPart) before.close(part);
}

template <bool INT8, bool FIRST, int PARTS, class Before>
TONARI_INLINE void multiply_run(const std::byte* a, const std::byte* b, std::int64_t tile_bytes, const Turn& turn,
                                Before& before) {
  load<4>(a, 64);
  load<6>(b, 64);
  load<5>(a + tile_bytes, 64);
  load<7>(b + tile_bytes, 64);
  Part part;
  multiply_tile<INT8, FIRST, PARTS, 0>(turn, before, part);
  multiply_tile<INT8, FIRST, PARTS, 1>(turn, before, part);
  multiply_tile<INT8, FIRST, PARTS, 2>(turn, before, part);
  multiply_tile<INT8, FIRST, PARTS, 3>(turn, before, part);
}

// Multiplies a block, and judges the parts of an earlier one: as many in each run that none are left after the last.
template <bool INT8, class Before>
void multiply(const std::byte* a, const std::byte* b, std::int64_t tile_bytes, int runs, const Turn& turn,
              Before& before, Ahead& ahead) {
  ahead.advance();
  if (before.left() == 0 || runs > kParts) multiply_run<INT8, true, 0>(a, b, tile_bytes, turn, before);
  else if (runs > 2) multiply_run<INT8, true, 1>(a, b, tile_bytes, turn, before);
  else if (runs == 2) multiply_run<INT8, true, 2>(a, b, tile_bytes, turn, before);
  else multiply_run<INT8, true, 4>(a, b, tile_bytes, turn, before);
  for (int run = 1; run < runs; ++run) {
    ahead.advance();
    a += kTileBytes, b += kTileBytes;
    const int left = before.left(), later = runs - run - 1;
    if (left <= later) multiply_run<INT8, false, 0>(a, b, tile_bytes, turn, before);
    else if (left <= 2 * later + 1) multiply_run<INT8, false, 1>(a, b, tile_bytes, turn, before);
    else multiply_run<INT8, false, 2>(a, b, tile_bytes, turn, before);
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
  // While a block is multiplied, the sums of the one before are stored, and the parts of an earlier one are judged.
  Block blocks[2];
  Block *in_tiles = nullptr, *stored = nullptr;
  std::int32_t* to = blocks[0].sums;  // where the sums in the tiles will be stored
  int which = 0;
  Epilogue<INT8, BOTH> before(task);
  Ahead ahead(task.queries.tiles);

  for (std::int64_t first = task.group_begin; first < task.group_end; first += panel) {
    const std::int64_t last = first + panel < task.group_end ? first + panel : task.group_end;
    const std::int64_t next = last + panel < task.group_end ? last + panel : task.group_end;
    ahead.aim(points + 2 * last * tile_bytes, points + 2 * next * tile_bytes);
    prefetch_numbers(task.points, last * kPoints, next * kPoints);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int run = chunk * chunk_runs;
      const int runs = run + chunk_runs < task.depth ? chunk_runs : task.depth - run;
      for (int tile = 0; tile < task.queries.tiles; ++tile) {
        const std::byte* b = queries + 2 * tile * tile_bytes + static_cast<std::int64_t>(run) * kTileBytes;
        for (std::int64_t group = first; group < last; ++group) {
          if (!task.visits(tile, group)) continue;
          const std::byte* a = points + 2 * group * tile_bytes + static_cast<std::int64_t>(run) * kTileBytes;
          std::int32_t* const place = waiting + ((group - first) * task.queries.tiles + tile) * kSums;
          before.begin(stored);
          multiply<INT8>(a, b, tile_bytes, runs, {.from = chunk == 0 ? nullptr : place, .to = to}, before, ahead);
          stored = in_tiles;
          in_tiles = chunk + 1 < chunks ? nullptr : &blocks[which];
          to = place;
          if (in_tiles == nullptr) continue;
          in_tiles->group = group, in_tiles->tile = tile;
          to = in_tiles->sums;
          which = 1 - which;
        }
      }
    }
  }
  before.begin(stored);
  before.finish();
  const Turn turn{.from = nullptr, .to = to};
  turn_tile<0>(turn), turn_tile<1>(turn), turn_tile<2>(turn), turn_tile<3>(turn);
  before.begin(in_tiles);
  before.finish();
}

template <bool INT8>
void screen_amx(const Task& task) {
  if (task.reverse.threshold != nullptr) return screen_amx_sides<INT8, true>(task);
  const bool keeps = task.marks == nullptr && !task.point_marks.wanted();
  if (keeps && task.queries.count <= kFewOnTiles) return screen_amx_few<INT8, kPoints, kQueries>(task);
  screen_amx_sides<INT8, false>(task);
}

template <bool INT8>
double peak(double seconds) {
  const TileScope tiles;
  alignas(64) std::byte a[kTileBytes];
  std::memset(a, 1, sizeof a);
  load<4>(a, 64), load<5>(a, 64), load<6>(a, 64), load<7>(a, 64);
  return measured_rate(seconds, [&] {
    for (int i = 0; i < 1000; ++i) {
      add_products<INT8, 0, 4, 6>(), add_products<INT8, 1, 4, 7>();
      add_products<INT8, 2, 5, 6>(), add_products<INT8, 3, 5, 7>();
    }
    return 1000.0 * 4 * 2 * 16 * 16 * (INT8 ? 64 : 32);
  });
}

#undef TONARI_INLINE

constexpr Layout kLayoutBf16{.point_group = kPoints, .query_tile = kQueries, .run = 32, .tile_rows = kTileRows};
constexpr Layout kLayoutI8{.point_group = kPoints, .query_tile = kQueries, .run = 64, .tile_rows = kTileRows};

constexpr Kernel kKernels[] = {
    {"inner/bfloat16/amx", Precision::bfloat16, Isa::amx, Needs::nothing, kLayoutBf16, screen_amx<false>, peak<false>},
    {"inner/int8/amx", Precision::int8, Isa::amx, Needs::nothing, kLayoutI8, screen_amx<true>, peak<true>}};

}  // namespace

std::span<const Kernel> amx_kernels() { return kKernels; }

}  // namespace tonari
