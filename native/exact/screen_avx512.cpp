// The screen for AVX-512: 16 lanes, 32 registers.
//
// 12 points x 2 registers of queries = 24 sums, 2 queries and 1 broadcast, of 32 registers: 24 multiply-adds (12
// cycles on two ports) for 14 loads (7 cycles). int8 is the same shape with vpdpbusd, four products a lane
// (AVX512-VNNI): queries are packed unsigned (plus 128), and each point's sum starts at -128 times the sum of its
// bytes.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"
#include "simd/avx512.hpp"

namespace tonari {
namespace {

// unsigned query bytes times signed point bytes, four products added to each lane
struct Avx512Vnni : Avx512 {
  // Not the intrinsic: GCC copies its sums from register to register and to memory, which takes half of the time.
  static I dot(I sum, I query, I point) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(query), "v"(point));
    return sum;
  }
};

constexpr int kPoints = 12, kVectors = 2;
constexpr Layout kLayout{.point_group = kPoints, .query_tile = kVectors * Avx512::lanes};
constexpr Layout kLayoutI8{
    .point_group = kPoints, .query_tile = kVectors * Avx512::lanes, .run = 4, .query_offset = 128, .query_limit = 127};

double peak_f32(double seconds) {
  Avx512::F sums[20];
  for (auto& sum : sums) sum = Avx512::set1(0.5f);
  const auto a = Avx512::set1(0.999f), b = Avx512::set1(0.001f);
  const double rate = measured_rate(seconds, [&] {
    for (int i = 0; i < 10000; ++i) {
#pragma GCC unroll 20
      for (int j = 0; j < 20; ++j) sums[j] = Avx512::fma(sums[j], a, b);
    }
    return 10000.0 * 20 * Avx512::lanes * 2;
  });
  volatile float sink = 0;
  for (auto& sum : sums) sink = sink + _mm512_cvtss_f32(sum);
  return rate;
}

double peak_i8(double seconds) {
  Avx512::I sums[20];
  for (auto& sum : sums) sum = Avx512::set1_i32(1);
  const auto a = Avx512::set1_i32(0x01020304), b = Avx512::set1_i32(0x01010101);
  const double rate = measured_rate(seconds, [&] {
    for (int i = 0; i < 10000; ++i) {
#pragma GCC unroll 20
      for (int j = 0; j < 20; ++j) sums[j] = Avx512Vnni::dot(sums[j], a, b);
    }
    return 10000.0 * 20 * 128;
  });
  volatile int sink = 0;
  for (auto& sum : sums) sink = sink + _mm_cvtsi128_si32(_mm512_castsi512_si128(sum));
  return rate;
}

constexpr char kSuffix[] = "/float32/avx512";
constexpr auto kTable = float32_kernels<Avx512, kSuffix, kPoints, kVectors>(
    Elementwise{}, Kernel{.precision = Precision::float32, .isa = Isa::avx512, .layout = kLayout, .peak = peak_f32},
    Kernel{"inner/int8/avx512", Precision::int8, Isa::avx512, Needs::avx512_vnni, kLayoutI8,
           screen_i8<Avx512Vnni, kPoints, kVectors>, peak_i8});

}  // namespace

std::span<const Kernel> avx512_kernels() { return kTable.kernels; }

}  // namespace tonari
