// The screen for AVX2: 8 lanes, 16 registers.
//
// float32: 6 points x 2 registers of queries = 12 sums, 2 queries and 1 broadcast, of 16 registers. 12 multiply-adds
// need 8 loads; with 2 ports for each the product stays ahead (12 / 2 = 6 cycles against 8 / 2 = 4).
// int8: pmaddubsw multiplies unsigned by signed bytes and adds pairs in 16 bits, which holds 2 * 127 * 128 = 32512: so
// queries keep 7 bits and nothing saturates. pmaddubsw + pmaddwd + paddd do 32 products in 3 instructions, float32 16
// in 2. 4 points x 2 registers = 8 sums.
#include <immintrin.h>

#include "peak.hpp"
#include "screen_tile.hpp"
#include "screens.hpp"

namespace tonari {
namespace {

struct Avx2 {
  static constexpr int lanes = 8;
  using F = __m256;
  using I = __m256i;
  static F zero() { return _mm256_setzero_ps(); }
  static F set1(float x) { return _mm256_set1_ps(x); }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F a) { _mm256_storeu_ps(p, a); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F abs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  static std::uint32_t less_equal(F a, F b) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ)));
  }
  static I set1_i32(std::int32_t x) { return _mm256_set1_epi32(x); }
  static I load_i32(const std::int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static F to_f32(I a) { return _mm256_cvtepi32_ps(a); }
  static I dot(I sum, I unsigned_query, I signed_point) {
    const I pairs = _mm256_maddubs_epi16(unsigned_query, signed_point);
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
      for (auto& sum : sums) sum = Avx2::fma(sum, a, b);
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
      for (auto& sum : sums) {
        asm volatile("" : "+x"(a));
        sum = Avx2::dot(sum, a, b);
      }
    }
    return 10000.0 * 10 * 64;
  });
  volatile int sink = 0;
  for (auto& sum : sums) sink = sink + _mm256_cvtsi256_si32(sum);
  return rate;
}

template <class OP>
constexpr Kernel make(const char* name, Op op) {
  return {name, op, Precision::float32, Isa::avx2, false, kLayout, screen_f32<Avx2, OP, kPoints, kVectors>, peak_f32};
}

constexpr Kernel kKernels[] = {
    make<InnerOp<Avx2>>("inner/float32/avx2", Op::inner), make<L1Op<Avx2>>("l1/float32/avx2", Op::l1),
    make<LinfOp<Avx2>>("linf/float32/avx2", Op::linf), make<Chi2Op<Avx2>>("chi2/float32/avx2", Op::chi2),
    Kernel{"inner/int8/avx2", Op::inner, Precision::int8, Isa::avx2, false, kLayoutI8,
           screen_i8<Avx2, kPointsI8, kVectors>, peak_i8}};

}  // namespace

std::span<const Kernel> avx2_kernels() { return kKernels; }

}  // namespace tonari
