// Registers of AVX2. Internal linkage: for files compiled for AVX2 only.
#pragma once

#include <immintrin.h>

#include "simd/generic.hpp"

namespace tonari {
namespace {

struct Avx2 : Generic {
  static constexpr int bytes = 32;
  using F32 = Raw<float, 8>;
  using F64 = Raw<double, 4>;

  template <int BYTES, int N>
  static std::uint32_t bits(Truth<BYTES, N> truth) {
    if constexpr (BYTES == 4 && N == 8) {
      return static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(truth)));
    } else if constexpr (BYTES == 8 && N == 4) {
      return static_cast<std::uint32_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(truth)));
    } else {
      return Generic::bits<BYTES, N>(truth);
    }
  }

  using Generic::fma, Generic::max, Generic::min, Generic::sqrt;
  static F32 fma(F32 a, F32 b, F32 c) { return _mm256_fmadd_ps(a, b, c); }
  static F64 fma(F64 a, F64 b, F64 c) { return _mm256_fmadd_pd(a, b, c); }
  static F32 min(F32 a, F32 b) { return _mm256_min_ps(a, b); }
  static F64 min(F64 a, F64 b) { return _mm256_min_pd(a, b); }
  static F32 max(F32 a, F32 b) { return _mm256_max_ps(a, b); }
  static F64 max(F64 a, F64 b) { return _mm256_max_pd(a, b); }
  static F32 sqrt(F32 a) { return _mm256_sqrt_ps(a); }
  static F64 sqrt(F64 a) { return _mm256_sqrt_pd(a); }

  template <class T, int N, class Stored>
  static Raw<T, N> load(const Stored* from) {
    if constexpr (N == 4 && std::is_same_v<T, double> && std::is_same_v<Stored, float>) {
      return _mm256_cvtps_pd(_mm_loadu_ps(from));
    } else if constexpr (N == 4 && std::is_same_v<T, double> && sizeof(Stored) == 1) {
      std::int32_t packed;
      std::memcpy(&packed, from, sizeof packed);
      const __m128i stored = _mm_cvtsi32_si128(packed);
      return _mm256_cvtepi32_pd(std::is_signed_v<Stored> ? _mm_cvtepi8_epi32(stored) : _mm_cvtepu8_epi32(stored));
    } else if constexpr (N == 4 && std::is_same_v<T, double> && std::is_same_v<Stored, Float16>) {
      return _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadu_si64(from)));
    } else if constexpr (N == 8 && std::is_same_v<T, float> && sizeof(Stored) == 1) {
      const __m128i stored = _mm_loadu_si64(from);
      return _mm256_cvtepi32_ps(std::is_signed_v<Stored> ? _mm256_cvtepi8_epi32(stored) : _mm256_cvtepu8_epi32(stored));
    } else if constexpr (N == 8 && std::is_same_v<T, float> && sizeof(Stored) == 2) {
      const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      if constexpr (std::is_same_v<Stored, Float16>) return _mm256_cvtph_ps(stored);
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(stored), 16));
    } else {
      return Generic::load<T, N>(from);
    }
  }

  template <class T, int N>
  static Raw<T, N> load_first(const T* from, std::int64_t count) {
    if constexpr (sizeof(T) == 4 && N == 8) {
      const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
      const __m256i here = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<std::int32_t>(count)), lanes);
      return reinterpret_cast<Raw<T, N>>(_mm256_maskload_epi32(reinterpret_cast<const int*>(from), here));
    } else if constexpr (sizeof(T) == 8 && N == 4) {
      const __m256i here = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
      return reinterpret_cast<Raw<T, N>>(_mm256_maskload_epi64(reinterpret_cast<const long long*>(from), here));
    } else {
      return Generic::load_first<T, N>(from, count);
    }
  }

  template <class T, int N, class Stored>
  static void store(Stored* to, Raw<T, N> values) {
    if constexpr (N == 4 && std::is_same_v<T, double> && sizeof(Stored) == 1) {
      const __m128i lowest = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
      const std::int32_t packed = _mm_cvtsi128_si32(_mm_shuffle_epi8(_mm256_cvttpd_epi32(values), lowest));
      std::memcpy(to, &packed, sizeof packed);
    } else {
      Generic::store<T, N>(to, values);
    }
  }
};

}  // namespace
}  // namespace tonari
