// The screen for NEON: 4 lanes, 32 registers.
//
// float32: 4 points x 4 registers of queries = 16 sums; with 4 queries and 4 points, which GCC loads into a register
// each, they take 24 of 32 registers. 6 points would take 34, so that GCC would keep sums in memory.
// int8 for processors without dot products: two widening products of signed bytes, whose neighbours are added in 16
// bits. A query's bytes are at most 127 in magnitude, so that a pair's sum is at most 2 * 128 * 127 = 32512.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"

namespace tonari {
namespace {

struct BytePairs {
  static Int32s add(Int32s sum, Int32s query, Int32s point) {
    const auto q = reinterpret_cast<int8x16_t>(query.parts.raw), x = reinterpret_cast<int8x16_t>(point.parts.raw);
    const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(q), vget_low_s8(x)), vmull_high_s8(q, x));
    return Int32s(vpadalq_s16(sum.parts.raw, pairs));
  }
};

constexpr int kPoints = 4, kVectors = 4;
constexpr Layout kLayout{.point_group = kPoints, .query_tile = kVectors * Floats::lanes};
constexpr Layout kLayoutI8{
    .point_group = kPoints, .query_tile = kVectors * Floats::lanes, .run = 4, .query_limit = 126};

constexpr char kSuffix[] = "/float32/neon";
constexpr auto kTable = float32_kernels<kSuffix, kPoints, kVectors>(
    Elementwise{}, Kernel{.precision = Precision::float32, .isa = Isa::neon, .layout = kLayout, .peak = peak_f32<16>},
    Kernel{"inner/int8/neon", Precision::int8, Isa::neon, Needs::nothing, kLayoutI8,
           screen_i8<BytePairs, kPoints, kVectors>, peak_i8<16, BytePairs>});

}  // namespace

std::span<const Kernel> neon_kernels() { return kTable.kernels; }

}  // namespace tonari
