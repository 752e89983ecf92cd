// The screen for AVX2: 8 lanes, 16 registers.
//
// float32: 6 points x 2 registers of queries = 12 sums, 2 queries and 1 broadcast, of 16 registers. 12 multiply-adds
// need 8 loads; with 2 ports for each the product stays ahead (12 / 2 = 6 cycles against 8 / 2 = 4).
// int8: pmaddubsw multiplies unsigned by signed bytes and adds pairs in 16 bits, which holds 2 * 127 * 128 = 32512: so
// queries keep 7 bits and nothing saturates. pmaddubsw + pmaddwd + paddd do 32 products in 3 instructions, float32 16
// in 2. 4 points x 2 registers = 8 sums.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"
#include "simd/avx2.hpp"

namespace tonari {
namespace {

struct Avx2Bytes : Avx2 {
  static I dot(I sum, I query, I point) {
    const I pairs = _mm256_maddubs_epi16(query, point);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

constexpr int kPoints = 6, kPointsI8 = 4, kVectors = 2;
constexpr Layout kLayout{.point_group = kPoints, .query_tile = kVectors * Avx2::lanes};
constexpr Layout kLayoutI8{
    .point_group = kPointsI8, .query_tile = kVectors * Avx2::lanes, .run = 4, .query_offset = 64, .query_limit = 63};

double peak_f32(double seconds) {
  Avx2::F sums[12];
  for (auto& sum : sums) sum = Avx2::set1(0.5f);
  const auto a = Avx2::set1(0.999f), b = Avx2::set1(0.001f);
  const double rate = measured_rate(seconds, [&] {
    for (int i = 0; i < 10000; ++i) {
#pragma GCC unroll 12
      for (int j = 0; j < 12; ++j) sums[j] = Avx2::fma(sums[j], a, b);
    }
    return 10000.0 * 12 * Avx2::lanes * 2;
  });
  volatile float sink = 0;
  for (auto& sum : sums) sink = sink + _mm256_cvtss_f32(sum);
  return rate;
}

double peak_i8(double seconds) {
  Avx2::I sums[10];
  for (auto& sum : sums) sum = Avx2::set1_i32(1);
  auto a = Avx2::set1_i32(0x01020304), b = Avx2::set1_i32(0x01010101);
  const double rate = measured_rate(seconds, [&] {
    for (int i = 0; i < 10000; ++i) {
      asm volatile("" : "+x"(a), "+x"(b));  // keeps the products from being hoisted out of the loop
#pragma GCC unroll 10
      for (int j = 0; j < 10; ++j) {
        asm volatile("" : "+x"(a));
        sums[j] = Avx2Bytes::dot(sums[j], a, b);
      }
    }
    return 10000.0 * 10 * 64;
  });
  volatile int sink = 0;
  for (auto& sum : sums) sink = sink + _mm256_cvtsi256_si32(sum);
  return rate;
}

constexpr char kSuffix[] = "/float32/avx2";
constexpr auto kTable = float32_kernels<Avx2, kSuffix, kPoints, kVectors>(
    Elementwise{}, Kernel{.precision = Precision::float32, .isa = Isa::avx2, .layout = kLayout, .peak = peak_f32},
    Kernel{"inner/int8/avx2", Precision::int8, Isa::avx2, Needs::nothing, kLayoutI8,
           screen_i8<Avx2Bytes, kPointsI8, kVectors>, peak_i8});

}  // namespace

std::span<const Kernel> avx2_kernels() { return kTable.kernels; }

}  // namespace tonari
