// The int8 screen for AVX2 machines with AVX-VNNI (Alder Lake, Zen 5 and later): vpdpbusd on 8 lanes.
//
// One instruction does what pmaddubsw + pmaddwd + paddd do in screen_avx2.cpp, without their 7-bit limit.
// 6 points x 2 registers of queries = 12 sums, 2 queries and 1 broadcast, of 16 registers.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"
#include "simd/avx2.hpp"

namespace tonari {
namespace {

struct Avx2Vnni : Avx2 {
  // Not the intrinsic: GCC copies its sums from register to register and to memory, which takes half of the time.
  static I dot(I sum, I query, I point) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(query), "x"(point));
    return sum;
  }
};

constexpr int kPoints = 6, kVectors = 2;
constexpr Layout kLayout{
    .point_group = kPoints, .query_tile = kVectors * Avx2::lanes, .run = 4, .query_offset = 128, .query_limit = 127};

double peak_i8(double seconds) {
  Avx2::I sums[12];
  for (auto& sum : sums) sum = Avx2::set1_i32(1);
  const auto a = Avx2::set1_i32(0x01020304), b = Avx2::set1_i32(0x01010101);
  const double rate = measured_rate(seconds, [&] {
    for (int i = 0; i < 10000; ++i) {
#pragma GCC unroll 12
      for (int j = 0; j < 12; ++j) sums[j] = Avx2Vnni::dot(sums[j], a, b);
    }
    return 10000.0 * 12 * 64;
  });
  volatile int sink = 0;
  for (auto& sum : sums) sink = sink + _mm256_cvtsi256_si32(sum);
  return rate;
}

constexpr Kernel kKernels[] = {{"inner/int8/avx2", Precision::int8, Isa::avx2, Needs::avx_vnni, kLayout,
                                screen_i8<Avx2Vnni, kPoints, kVectors>, peak_i8}};

}  // namespace

std::span<const Kernel> avx_vnni_kernels() { return kKernels; }

}  // namespace tonari
