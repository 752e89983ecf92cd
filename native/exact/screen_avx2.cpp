// The screen for AVX2: 8 lanes, 16 registers.
//
// float32: 6 points x 2 registers of queries = 12 sums; with 2 queries and 1 broadcast they take 15 of 16 registers. 12
// multiply-adds need 8 loads; with 2 ports for each, loads do not limit the products (8 / 2 = 4 cycles, 12 / 2 = 6).
// int8: pmaddubsw multiplies unsigned by signed bytes and adds pairs in 16 bits. Queries have 7 bits, so that a pair is
// at most 2 * 127 * 128 = 32512 and nothing saturates. pmaddubsw + pmaddwd + paddd compute 32 products in 3
// instructions; float32 computes 16 in 2. 4 points x 2 registers = 8 sums.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"

namespace tonari {
namespace {

struct BytePairs {
  static Int32s add(Int32s sum, Int32s query, Int32s point) {
    const __m256i pairs =
        _mm256_maddubs_epi16(reinterpret_cast<__m256i>(query.parts.raw), reinterpret_cast<__m256i>(point.parts.raw));
    return sum + Int32s(reinterpret_cast<Raw<std::int32_t, 8>>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
  }
};

constexpr int kPoints = 6, kPointsI8 = 4, kVectors = 2;
constexpr Layout kLayout{.point_group = kPoints, .query_tile = kVectors * Floats::lanes};
constexpr Layout kLayoutI8{
    .point_group = kPointsI8, .query_tile = kVectors * Floats::lanes, .run = 4, .query_offset = 64, .query_limit = 63};

constexpr char kSuffix[] = "/float32/avx2";
constexpr auto kTable = float32_kernels<kSuffix, kPoints, kVectors>(
    Elementwise{}, Kernel{.precision = Precision::float32, .isa = Isa::avx2, .layout = kLayout, .peak = peak_f32<12>},
    Kernel{"inner/int8/avx2", Precision::int8, Isa::avx2, Needs::nothing, kLayoutI8,
           screen_i8<BytePairs, kPointsI8, kVectors>, peak_i8<10, BytePairs>});

}  // namespace

std::span<const Kernel> avx2_kernels() { return kTable.kernels; }

}  // namespace tonari
