// The screen for AVX-512: 16 lanes, 32 registers.
//
// 12 points x 2 registers of queries = 24 sums, 2 queries and 1 broadcast, of 32 registers: 24 multiply-adds (12
// cycles on two ports) for 14 loads (7 cycles). int8 is the same shape with vpdpbusd, four products a lane (AVX512-VNNI):
// queries are packed unsigned (plus 128), and each point's sum starts at -128 times the sum of its bytes.
#include <immintrin.h>

#include "peak.hpp"
#include "screen_tile.hpp"
#include "screens.hpp"

namespace tonari {
namespace {

struct Avx512 {
  static constexpr int lanes = 16;
  using F = __m512;
  using I = __m512i;
  static F zero() { return _mm512_setzero_ps(); }
  static F set1(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F abs(F a) { return _mm512_abs_ps(a); }
  static std::uint32_t less_equal(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  static I set1_i32(std::int32_t x) { return _mm512_set1_epi32(x); }
  static I load_i32(const std::int32_t* p) { return _mm512_loadu_si512(p); }
  static F to_f32(I a) { return _mm512_cvtepi32_ps(a); }
  static I dot(I sum, I unsigned_query, I signed_point) {
    return _mm512_dpbusd_epi32(sum, unsigned_query, signed_point);
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
      for (auto& sum : sums) sum = Avx512::fma(sum, a, b);
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
      for (auto& sum : sums) sum = Avx512::dot(sum, a, b);
    }
    return 10000.0 * 20 * 128;
  });
  volatile int sink = 0;
  for (auto& sum : sums) sink = sink + _mm_cvtsi128_si32(_mm512_castsi512_si128(sum));
  return rate;
}

template <class OP>
constexpr Kernel make(const char* name, Op op) {
  return {name, op, Precision::float32, Isa::avx512, false, kLayout, screen_f32<Avx512, OP, kPoints, kVectors>,
          peak_f32};
}

constexpr Kernel kKernels[] = {
    make<InnerOp<Avx512>>("inner/float32/avx512", Op::inner), make<L1Op<Avx512>>("l1/float32/avx512", Op::l1),
    make<LinfOp<Avx512>>("linf/float32/avx512", Op::linf), make<Chi2Op<Avx512>>("chi2/float32/avx512", Op::chi2),
    Kernel{"inner/int8/avx512", Op::inner, Precision::int8, Isa::avx512, true, kLayoutI8,
           screen_i8<Avx512, kPoints, kVectors>, peak_i8}};

}  // namespace

std::span<const Kernel> avx512_kernels() { return kKernels; }

}  // namespace tonari
