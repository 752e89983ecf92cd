// One vocabulary for vectors on every instruction set. The set is the one for which the including file is compiled.
//
//   Vec<T, N>                 N numbers of type T: a register of the target, part of one, or several
//   Register<T>               as many as one register holds, kRegisterLanes<T>
//   Mask<B, N>                a truth value for each of N lanes of B bytes: the result of comparing Vec<T, N>
//
//   Vec{x}, or x beside a Vec x in every lane
//   Vec::load(p), v.store(p)  at any address; load converts stored types (float16, bytes, ...) to T, and store converts
//                             float64 to float32 and bfloat16 (to nearest, ties to even) and whole numbers to bytes
//   Vec::load_first(p, n)     n lanes, then zeros (single registers)
//   Vec::numbers()            0, 1, 2, ... (single registers)
//   v[i], v.set(i, x)         one lane
//   + - * /  & | ^ ~ << >>    lane by lane; nothing is contracted
//   fma(a, b, c)              a b + c, rounded once if the target has it, else twice
//   min, max                  the first if it is smaller (larger), else the second, also where either is NaN
//   abs                       without the sign
//   sqrt                      rounded once, as all of the above
//   < <= > >= ==              a Mask
//   less_among(mask, a, b)    mask & (a < b) of integers, in one instruction where there is one
//   & |, any(m), bits(m)      of masks: lane i is bit i; Mask::of(bits) makes one
//   choose(mask, yes, no)     lane by lane
//   count(n, mask)            n, plus one where true
//   as<U>(v), convert<U>(v)   the same bits, the same numbers, as U of the same size
//   compress(p, bits, v)      packs the lanes whose bits are set; may write N (kCompresses: by an instruction)
//   fold(v, f)                all lanes in one: f of both halves, until one is left
//   xor_lanes<F>(v)           lane i is lane i ^ F (single registers, as the next two)
//   slide(before, here)       moved by one lane: the last of `before`, then `here` without its last
//   interleave<H>(a, b)       half H of a0 b0 a1 b1 ...
//
// Target has the parts that differ by instruction set: simd/generic.hpp uses C++ and the compilers' vectors
// (simd/raw.hpp); avx2.hpp, avx512.hpp and neon.hpp replace the operations for which they have instructions. Operations
// that only one kernel needs, such as products of bytes or tiles, are in that kernel's file.
//
// Internal linkage throughout: each instruction set compiles its own copy, and none may leak into baseline code.
#pragma once

#include <cstddef>

#if defined(__AVX512F__)
#include "simd/avx512.hpp"
#elif defined(__AVX2__)
#include "simd/avx2.hpp"
#elif TONARI_NEON  // set for files of that level: the compiler has NEON for generic ones too
#include "simd/neon.hpp"
#else
#include "simd/generic.hpp"
#endif

// Inlined into every loop, even a large one.
#define TONARI_LANEWISE [[gnu::always_inline]]

namespace tonari {
namespace {

#if defined(__AVX512F__)
using Target = Avx512;
#elif defined(__AVX2__)
using Target = Avx2;
#elif TONARI_NEON
using Target = Neon;
#else
using Target = Generic;
#endif

template <class T>
constexpr int kRegisterLanes = Target::bytes / static_cast<int>(sizeof(T));
constexpr bool kCompresses = Target::compresses;

// A register, or two halves; not an array, so that compilers keep everything in registers.
template <class RawType, class Half, bool WHOLE>
struct Registers {
  RawType raw;
};
template <class RawType, class Half>
struct Registers<RawType, Half, false> {
  Half first, second;
};

// Applies operation(raw, ...) to each register of the arguments, and returns the results as a Result.
template <class Result, class Operation, class... Args>
TONARI_LANEWISE inline Result each(const Operation& operation, const Args&... args) {
  if constexpr (Result::whole) {
    return Result(operation(args.parts.raw...));
  } else {
    using Half = typename Result::Half;
    return Result(each<Half>(operation, args.parts.first...), each<Half>(operation, args.parts.second...));
  }
}

template <int BYTES, int N>
struct Mask {
  static constexpr bool whole = BYTES * N <= Target::bytes;
  using Half = Mask<BYTES, N / 2>;
  using RawType = typename Target::template Truth<BYTES, N>;
  Registers<RawType, Half, whole> parts;

  Mask() = default;
  TONARI_LANEWISE explicit Mask(RawType raw) : parts{raw} {}
  TONARI_LANEWISE Mask(const Half& first, const Half& second) : parts{first, second} {}

  // A mask from bits: lane i is bit FIRST + i.
  template <int FIRST = 0>
  TONARI_LANEWISE static Mask of(std::uint32_t bits) {
    if constexpr (whole) return Mask(Target::template truth_of<BYTES, N, FIRST>(bits));
    else return Mask(Half::template of<FIRST>(bits), Half::template of<FIRST + N / 2>(bits));
  }
  TONARI_LANEWISE friend std::uint32_t bits(const Mask& a) {
    if constexpr (whole) return Target::template bits<BYTES, N>(a.parts.raw);
    else return bits(a.parts.first) | bits(a.parts.second) << (N / 2);
  }
  TONARI_LANEWISE friend bool any(const Mask& a) { return bits(a) != 0; }
  TONARI_LANEWISE friend Mask operator&(const Mask& a, const Mask& b) {
    return each<Mask>([](auto x, auto y) { return Target::both(x, y); }, a, b);
  }
  TONARI_LANEWISE friend Mask operator|(const Mask& a, const Mask& b) {
    return each<Mask>([](auto x, auto y) { return Target::either(x, y); }, a, b);
  }
};

template <class T, int N>
struct Vec {
  static constexpr int lanes = N;
  static constexpr bool whole = sizeof(T) * N <= Target::bytes;
  using Half = Vec<T, N / 2>;
  using Truth = Mask<sizeof(T), N>;
  Registers<Raw<T, N>, Half, whole> parts;

  Vec() = default;
  TONARI_LANEWISE explicit Vec(Raw<T, N> raw) : parts{raw} {}
  TONARI_LANEWISE Vec(const Half& first, const Half& second) : parts{first, second} {}
  TONARI_LANEWISE Vec(T x)
    requires whole
      : parts{x - Raw<T, N>{}} {}  // a subtraction, because 0.0 + -0.0 would lose the sign of x
  TONARI_LANEWISE Vec(T x)
    requires(!whole)
      : parts{Half(x), Half(x)} {}

  template <class Stored>
  TONARI_LANEWISE static Vec load(const Stored* from) {
    if constexpr (whole) return Vec(Target::template load<T, N>(from));
    else return Vec(Half::load(from), Half::load(from + N / 2));
  }
  TONARI_LANEWISE static Vec load_first(const T* from, std::int64_t count) {
    static_assert(whole);
    return Vec(Target::template load_first<T, N>(from, count));
  }
  template <class Stored>
  TONARI_LANEWISE void store(Stored* to) const {
    if constexpr (whole) Target::template store<T, N>(to, parts.raw);
    else parts.first.store(to), parts.second.store(to + N / 2);
  }

  TONARI_LANEWISE static Vec numbers() { return numbers(std::make_integer_sequence<int, N>{}); }
  TONARI_LANEWISE T operator[](std::int64_t lane) const {
    if constexpr (whole) return parts.raw[lane];
    else return lane < N / 2 ? parts.first[lane] : parts.second[lane - N / 2];
  }
  TONARI_LANEWISE void set(std::int64_t lane, T x) {
    if constexpr (whole) parts.raw[lane] = x;
    else lane < N / 2 ? parts.first.set(lane, x) : parts.second.set(lane - N / 2, x);
  }

  TONARI_LANEWISE friend Vec operator+(Vec a, Vec b) {
    return each<Vec>([](auto x, auto y) { return x + y; }, a, b);
  }
  TONARI_LANEWISE friend Vec operator-(Vec a, Vec b) {
    return each<Vec>([](auto x, auto y) { return x - y; }, a, b);
  }
  TONARI_LANEWISE friend Vec operator*(Vec a, Vec b) {
    return each<Vec>([](auto x, auto y) { return x * y; }, a, b);
  }
  TONARI_LANEWISE friend Vec operator/(Vec a, Vec b) {
    return each<Vec>([](auto x, auto y) { return x / y; }, a, b);
  }
  TONARI_LANEWISE friend Vec operator&(Vec a, Vec b) {
    return each<Vec>([](auto x, auto y) { return x & y; }, a, b);
  }
  TONARI_LANEWISE friend Vec operator|(Vec a, Vec b) {
    return each<Vec>([](auto x, auto y) { return x | y; }, a, b);
  }
  TONARI_LANEWISE friend Vec operator^(Vec a, Vec b) {
    return each<Vec>([](auto x, auto y) { return x ^ y; }, a, b);
  }
  TONARI_LANEWISE friend Vec operator~(Vec a) {
    return each<Vec>([](auto x) { return ~x; }, a);
  }
  TONARI_LANEWISE friend Vec operator<<(Vec a, int by) {
    return each<Vec>([by](auto x) { return x << by; }, a);
  }
  TONARI_LANEWISE friend Vec operator>>(Vec a, int by) {
    return each<Vec>([by](auto x) { return x >> by; }, a);
  }

  TONARI_LANEWISE friend Vec min(Vec a, Vec b) {
    return each<Vec>([](auto x, auto y) { return Target::min(x, y); }, a, b);
  }
  TONARI_LANEWISE friend Vec max(Vec a, Vec b) {
    return each<Vec>([](auto x, auto y) { return Target::max(x, y); }, a, b);
  }
  TONARI_LANEWISE friend Vec abs(Vec a) {
    return each<Vec>([](auto x) { return Target::abs(x); }, a);
  }
  TONARI_LANEWISE friend Vec sqrt(Vec a) {
    return each<Vec>([](auto x) { return Target::sqrt(x); }, a);
  }
  TONARI_LANEWISE friend Vec fma(Vec a, Vec b, Vec c) {
    return each<Vec>([](auto x, auto y, auto z) { return Target::fma(x, y, z); }, a, b, c);
  }

  TONARI_LANEWISE friend Truth operator<(Vec a, Vec b) {
    return each<Truth>([](auto x, auto y) { return Target::less(x, y); }, a, b);
  }
  TONARI_LANEWISE friend Truth operator>(Vec a, Vec b) { return b < a; }
  TONARI_LANEWISE friend Truth operator<=(Vec a, Vec b) {
    return each<Truth>([](auto x, auto y) { return Target::less_equal(x, y); }, a, b);
  }
  TONARI_LANEWISE friend Truth operator>=(Vec a, Vec b) { return b <= a; }
  TONARI_LANEWISE friend Truth operator==(Vec a, Vec b) {
    return each<Truth>([](auto x, auto y) { return Target::equal(x, y); }, a, b);
  }
  TONARI_LANEWISE friend Truth less_among(Truth truth, Vec a, Vec b) {
    return each<Truth>([](auto t, auto x, auto y) { return Target::less_among(t, x, y); }, truth, a, b);
  }
  TONARI_LANEWISE friend Vec choose(Truth truth, Vec yes, Vec no) {
    return each<Vec>([](auto t, auto x, auto y) { return Target::choose(t, x, y); }, truth, yes, no);
  }
  TONARI_LANEWISE friend Vec count(Vec counts, Truth truth) {
    return each<Vec>([](auto n, auto t) { return Target::count(n, t); }, counts, truth);
  }

  TONARI_LANEWISE friend void compress(T* to, std::uint32_t bits, Vec values) {
    static_assert(whole);
    Target::compress(to, bits, values.parts.raw);
  }

 private:
  template <int... I>
  TONARI_LANEWISE static Vec numbers(std::integer_sequence<int, I...>) {
    static_assert(whole);
    return Vec(Raw<T, N>{static_cast<T>(I)...});
  }
};

template <class T>
using Register = Vec<T, kRegisterLanes<T>>;

// Reinterprets the bits as numbers of another type of the same size.
template <class U, class T, int N>
TONARI_LANEWISE inline Vec<U, N> as(Vec<T, N> a) {
  static_assert(sizeof(U) == sizeof(T));
  return each<Vec<U, N>>([](auto x) { return reinterpret_cast<Raw<U, sizeof x / sizeof(U)>>(x); }, a);
}
// Converts to numbers of another type of the same size, rounded to the nearest if U cannot represent them.
template <class U, class T, int N>
TONARI_LANEWISE inline Vec<U, N> convert(Vec<T, N> a) {
  static_assert(sizeof(U) == sizeof(T));
  return each<Vec<U, N>>([](auto x) { return __builtin_convertvector(x, Raw<U, sizeof x / sizeof(U)>); }, a);
}

// Lanes I... of a's lanes followed by b's.
template <class R, int... I>
TONARI_LANEWISE inline auto shuffled(R a, R b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, I...);
}
template <int F, class T, int N, int... I>
TONARI_LANEWISE inline Vec<T, N> xor_lanes(Vec<T, N> a, std::integer_sequence<int, I...>) {
  return Vec<T, N>(shuffled(a.parts.raw, a.parts.raw, std::integer_sequence<int, (I ^ F)...>{}));
}
template <int F, class T, int N>
TONARI_LANEWISE inline Vec<T, N> xor_lanes(Vec<T, N> a) {
  return xor_lanes<F>(a, std::make_integer_sequence<int, N>{});
}
template <class T, int N, int... I>
TONARI_LANEWISE inline Vec<T, N> slide(Vec<T, N> before, Vec<T, N> here, std::integer_sequence<int, I...>) {
  return Vec<T, N>(shuffled(before.parts.raw, here.parts.raw, std::integer_sequence<int, (N - 1 + I)...>{}));
}
template <class T, int N>
TONARI_LANEWISE inline Vec<T, N> slide(Vec<T, N> before, Vec<T, N> here) {
  return slide(before, here, std::make_integer_sequence<int, N>{});
}
template <int HALF, class T, int N, int... I>
TONARI_LANEWISE inline Vec<T, N> interleave(Vec<T, N> a, Vec<T, N> b, std::integer_sequence<int, I...>) {
  return Vec<T, N>(
      shuffled(a.parts.raw, b.parts.raw, std::integer_sequence<int, (HALF * N / 2 + I / 2 + I % 2 * N)...>{}));
}
template <int HALF, class T, int N>
TONARI_LANEWISE inline Vec<T, N> interleave(Vec<T, N> a, Vec<T, N> b) {
  return interleave<HALF>(a, b, std::make_integer_sequence<int, N>{});
}

template <int APART, class T, int N, class F>
TONARI_LANEWISE inline T fold_lanes(Vec<T, N> a, const F& f) {
  const Vec<T, N> joined = f(a, xor_lanes<APART>(a));
  if constexpr (APART > 1) return fold_lanes<APART / 2>(joined, f);
  else return joined[0];
}
template <class T, int N, class F, int... I>
TONARI_LANEWISE inline T fold_halves(Vec<T, N> a, const F& f, std::integer_sequence<int, I...>) {
  using Half = Vec<T, N / 2>;
  const Half first(shuffled(a.parts.raw, a.parts.raw, std::integer_sequence<int, I...>{}));
  const Half second(shuffled(a.parts.raw, a.parts.raw, std::integer_sequence<int, (N / 2 + I)...>{}));
  return fold(f(first, second), f);
}
template <class T, int N, class F>
TONARI_LANEWISE inline T fold(Vec<T, N> a, const F& f) {
  if constexpr (!Vec<T, N>::whole) return fold(f(a.parts.first, a.parts.second), f);
  else if constexpr (sizeof a > 16) return fold_halves(a, f, std::make_integer_sequence<int, N / 2>{});
  else return fold_lanes<N / 2>(a, f);  // vectors of less than 16 bytes have no registers of their own
}

}  // namespace
}  // namespace tonari

#undef TONARI_LANEWISE
