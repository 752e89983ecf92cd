// Registers of AVX-512, as exact/screen_tile.hpp wants them. Internal linkage: for files compiled for AVX-512 only.
#pragma once

#include <immintrin.h>

#include <cstdint>

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
  static F as_f32(I a) { return _mm512_castsi512_ps(a); }
};

}  // namespace
}  // namespace tonari
