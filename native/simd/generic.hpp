// Registers of 16 bytes in portable C++: the base of every target, which AVX2 and AVX-512 refine.
//
// Their overloads for whole registers are not templates, so they are preferred to the templates here.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/row_values.hpp"
#include "simd/raw.hpp"

namespace tonari {
namespace {

struct Generic {
  static constexpr int bytes = 16;           // bytes of a register
  static constexpr int registers = 16;       // number of registers, at least
  static constexpr bool compresses = false;  // whether `compress` is an instruction

  // The result of a comparison of N lanes: all bits of a lane are set, or none.
  template <int BYTES, int N>
  using Truth = Raw<Integer<BYTES>, N>;

  template <class R> static IntegersOf<R> less(R a, R b) { return a < b; }
  template <class R> static IntegersOf<R> less_equal(R a, R b) { return a <= b; }
  template <class R> static IntegersOf<R> equal(R a, R b) { return a == b; }
  template <class M, class R> static M less_among(M truth, R a, R b) { return truth & (a < b); }
  template <class M> static M both(M a, M b) { return a & b; }
  template <class M> static M either(M a, M b) { return a | b; }
  template <class M, class R> static R choose(M truth, R yes, R no) {
    return reinterpret_cast<R>((truth & reinterpret_cast<M>(yes)) | (~truth & reinterpret_cast<M>(no)));
  }

  template <class R> static R count(R counts, IntegersOf<R> truth) { return counts - truth; }

  template <int BYTES, int N>
  static std::uint32_t bits(Truth<BYTES, N> truth) {
#if defined(__SSE2__)
    if constexpr (BYTES == 4 && N == 4)
      return static_cast<std::uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(truth)));
    if constexpr (BYTES == 8 && N == 2)
      return static_cast<std::uint32_t>(_mm_movemask_pd(reinterpret_cast<__m128d>(truth)));
#endif
    std::uint32_t found = 0;
    for (int lane = 0; lane < N; ++lane) found |= static_cast<std::uint32_t>(truth[lane] & 1) << lane;
    return found;
  }
  // A mask from bits: lane i is bit FIRST + i.
  template <int BYTES, int N, int FIRST>
  static Truth<BYTES, N> truth_of(std::uint32_t bits) {
    Truth<BYTES, N> bit;
    for (int lane = 0; lane < N; ++lane) bit[lane] = Integer<BYTES>{1} << (FIRST + lane);
    return (bit & static_cast<Integer<BYTES>>(bits)) == bit;
  }

  template <class R> static R min(R a, R b) { return a < b ? a : b; }
  template <class R> static R max(R a, R b) { return a > b ? a : b; }
  template <class R> static R fma(R a, R b, R c) { return a * b + c; }
  template <class R> static R abs(R a) {
    using I = IntegersOf<R>;
    return reinterpret_cast<R>(reinterpret_cast<I>(a) & std::numeric_limits<ElementOf<I>>::max());
  }
  template <class R> static R sqrt(R a) {
#if defined(__SSE2__)
    if constexpr (std::is_same_v<R, Raw<float, 4>>) return _mm_sqrt_ps(a);
    if constexpr (std::is_same_v<R, Raw<double, 2>>) return _mm_sqrt_pd(a);
#endif
    for (std::size_t lane = 0; lane < sizeof(R) / sizeof(a[0]); ++lane) a[lane] = std::sqrt(a[lane]);
    return a;
  }

  // Loads N stored values as T.
  template <class T, int N, class Stored>
  static Raw<T, N> load(const Stored* from) {
    if constexpr (std::is_same_v<T, Stored>) {
      Raw<T, N> values;
      std::memcpy(&values, from, sizeof values);
      return values;
    } else if constexpr (std::is_same_v<Stored, Bfloat16>) {
      const auto halves = load<std::uint16_t, N>(reinterpret_cast<const std::uint16_t*>(from));
      const auto values = reinterpret_cast<Raw<float, N>>(__builtin_convertvector(halves, Raw<std::uint32_t, N>) << 16);
      return __builtin_convertvector(values, Raw<T, N>);
    } else if constexpr (std::is_same_v<Stored, Float16>) {
      Raw<T, N> values;
      for (int lane = 0; lane < N; ++lane) values[lane] = to_value<T>(from[lane]);
      return values;
    } else {
      return __builtin_convertvector((load<Stored, N>(from)), Raw<T, N>);
    }
  }

  // Stores N values as type Stored.
  template <class T, int N, class Stored>
  static void store(Stored* to, Raw<T, N> values) {
    if constexpr (std::is_same_v<T, Stored>) {
      std::memcpy(to, &values, sizeof values);
    } else if constexpr (std::is_same_v<Stored, Bfloat16>) {
      const auto bits = reinterpret_cast<Raw<std::uint32_t, N>>(__builtin_convertvector(values, Raw<float, N>));
      const auto halves = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
      store<std::uint16_t, N>(reinterpret_cast<std::uint16_t*>(to),
                              __builtin_convertvector(halves, Raw<std::uint16_t, N>));
    } else if constexpr (sizeof(Stored) == 1) {  // via int32, for which instructions exist
      const auto whole = __builtin_convertvector(values, Raw<std::int32_t, N>);
      store<Stored, N>(to, __builtin_convertvector(whole, Raw<Stored, N>));
    } else {
      store<Stored, N>(to, __builtin_convertvector(values, Raw<Stored, N>));
    }
  }

  // Loads the first `count` values, then zeros.
  template <class T, int N>
  static Raw<T, N> load_first(const T* from, std::int64_t count) {
    Raw<T, N> values{};
    std::memcpy(&values, from, static_cast<std::size_t>(count) * sizeof(T));
    return values;
  }

  // Packs the lanes whose bits are set, in their order. Up to N values may be written; those after the packed ones are
  // undefined.
  template <class T, class R>
  static void compress(T* to, std::uint32_t bits, R values) {
    for (; bits != 0; bits &= bits - 1) *to++ = values[std::countr_zero(bits)];
  }
};

}  // namespace
}  // namespace tonari
