// Registers of AVX-512. Internal linkage: for files compiled for AVX-512 only.
#pragma once

#include <immintrin.h>

#include "simd/generic.hpp"

namespace tonari {
namespace {

struct Avx512 : Generic {
  static constexpr int bytes = 64;
  static constexpr int registers = 32;
  static constexpr bool compresses = true;
  using F32 = Raw<float, 16>;
  using F64 = Raw<double, 8>;
  using I32 = Raw<std::int32_t, 16>;
  using I64 = Raw<std::int64_t, 8>;

  // A bit per lane. Not __mmask16 for 8 lanes: GCC 12 -O1 loses the zeros beyond them.
  template <int BYTES, int N>
  using Truth = std::conditional_t<BYTES == 8, __mmask8, __mmask16>;

  static __mmask16 less(F32 a, F32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static __mmask8 less(F64 a, F64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
  static __mmask16 less(I32 a, I32 b) { return _mm512_cmplt_epi32_mask(whole(a), whole(b)); }
  static __mmask8 less(I64 a, I64 b) { return _mm512_cmplt_epi64_mask(whole(a), whole(b)); }
  static __mmask16 less_equal(F32 a, F32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  static __mmask8 less_equal(F64 a, F64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
  static __mmask16 less_equal(I32 a, I32 b) { return _mm512_cmple_epi32_mask(whole(a), whole(b)); }
  static __mmask8 less_equal(I64 a, I64 b) { return _mm512_cmple_epi64_mask(whole(a), whole(b)); }
  static __mmask16 equal(F32 a, F32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static __mmask8 equal(F64 a, F64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
  static __mmask16 equal(I32 a, I32 b) { return _mm512_cmpeq_epi32_mask(whole(a), whole(b)); }
  static __mmask8 equal(I64 a, I64 b) { return _mm512_cmpeq_epi64_mask(whole(a), whole(b)); }

  static __mmask16 less_among(__mmask16 truth, I32 a, I32 b) {
    return _mm512_mask_cmplt_epi32_mask(truth, whole(a), whole(b));
  }
  static __mmask8 less_among(__mmask8 truth, I64 a, I64 b) {
    return _mm512_mask_cmplt_epi64_mask(truth, whole(a), whole(b));
  }

  // Intrinsics are used because GCC would move masks to general registers for & and |.
  static __mmask8 both(__mmask8 a, __mmask8 b) { return _kand_mask8(a, b); }
  static __mmask16 both(__mmask16 a, __mmask16 b) { return _kand_mask16(a, b); }
  static __mmask8 either(__mmask8 a, __mmask8 b) { return _kor_mask8(a, b); }
  static __mmask16 either(__mmask16 a, __mmask16 b) { return _kor_mask16(a, b); }

  template <class R>
  static R choose(__mmask16 truth, R yes, R no) {
    return reinterpret_cast<R>(_mm512_mask_blend_epi32(truth, whole(no), whole(yes)));
  }
  template <class R>
  static R choose(__mmask8 truth, R yes, R no) {
    return reinterpret_cast<R>(_mm512_mask_blend_epi64(truth, whole(no), whole(yes)));
  }

  static I32 count(I32 counts, __mmask16 truth) {
    const __m512i a = whole(counts);
    return reinterpret_cast<I32>(_mm512_mask_sub_epi32(a, truth, a, _mm512_set1_epi32(-1)));
  }
  static I64 count(I64 counts, __mmask8 truth) {
    const __m512i a = whole(counts);
    return reinterpret_cast<I64>(_mm512_mask_sub_epi64(a, truth, a, _mm512_set1_epi64(-1)));
  }

  template <int BYTES, int N> static std::uint32_t bits(Truth<BYTES, N> truth) { return truth; }
  template <int BYTES, int N, int FIRST>
  static Truth<BYTES, N> truth_of(std::uint32_t bits) {
    return static_cast<Truth<BYTES, N>>(bits >> FIRST);
  }

  using Generic::fma, Generic::max, Generic::min, Generic::sqrt;
  static F32 fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
  static F64 fma(F64 a, F64 b, F64 c) { return _mm512_fmadd_pd(a, b, c); }
  static F32 min(F32 a, F32 b) { return _mm512_min_ps(a, b); }
  static F64 min(F64 a, F64 b) { return _mm512_min_pd(a, b); }
  static F32 max(F32 a, F32 b) { return _mm512_max_ps(a, b); }
  static F64 max(F64 a, F64 b) { return _mm512_max_pd(a, b); }
  static F32 sqrt(F32 a) { return _mm512_sqrt_ps(a); }
  static F64 sqrt(F64 a) { return _mm512_sqrt_pd(a); }

  template <class T, int N, class Stored>
  static Raw<T, N> load(const Stored* from) {
    if constexpr (N == 8 && std::is_same_v<T, double> && std::is_same_v<Stored, float>) {
      return _mm512_cvtps_pd(_mm256_loadu_ps(from));
    } else if constexpr (N == 8 && std::is_same_v<T, double> && sizeof(Stored) == 1) {
      const __m128i stored = _mm_loadu_si64(from);
      return _mm512_cvtepi32_pd(std::is_signed_v<Stored> ? _mm256_cvtepi8_epi32(stored) : _mm256_cvtepu8_epi32(stored));
    } else if constexpr (N == 8 && std::is_same_v<T, double> && std::is_same_v<Stored, Float16>) {
      return _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
    } else if constexpr (N == 16 && std::is_same_v<T, float> && sizeof(Stored) == 1) {
      const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      return _mm512_cvtepi32_ps(std::is_signed_v<Stored> ? _mm512_cvtepi8_epi32(stored) : _mm512_cvtepu8_epi32(stored));
    } else if constexpr (N == 16 && std::is_same_v<T, float> && sizeof(Stored) == 2) {
      const __m256i stored = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      if constexpr (std::is_same_v<Stored, Float16>) return _mm512_cvtph_ps(stored);
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(stored), 16));
    } else {
      return Generic::load<T, N>(from);
    }
  }

  template <class T, int N>
  static Raw<T, N> load_first(const T* from, std::int64_t count) {
    const std::uint32_t here = count >= N ? ~0u : (1u << count) - 1;
    if constexpr (sizeof(T) == 4 && N == 16) {
      return reinterpret_cast<Raw<T, N>>(_mm512_maskz_loadu_epi32(static_cast<__mmask16>(here), from));
    } else if constexpr (sizeof(T) == 4 && N == 8) {
      return reinterpret_cast<Raw<T, N>>(_mm256_maskz_loadu_epi32(static_cast<__mmask8>(here), from));
    } else {
      static_assert(sizeof(T) == 8 && N == 8);
      return reinterpret_cast<Raw<T, N>>(_mm512_maskz_loadu_epi64(static_cast<__mmask8>(here), from));
    }
  }

  static void compress(std::int32_t* to, std::uint32_t bits, I32 values) {
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), whole(values)));
  }
  static void compress(std::int64_t* to, std::uint32_t bits, I64 values) {
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(static_cast<__mmask8>(bits), whole(values)));
  }
  static void compress(std::int32_t* to, std::uint32_t bits, Raw<std::int32_t, 8> values) {
    const __m256i packed = _mm256_maskz_compress_epi32(static_cast<__mmask8>(bits), reinterpret_cast<__m256i>(values));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), packed);
  }

 private:
  template <class R>
  static __m512i whole(R a) {
    return reinterpret_cast<__m512i>(a);
  }
};

}  // namespace
}  // namespace tonari
