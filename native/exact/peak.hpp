// Measures how often per second one core executes a kernel's main instruction, an upper bound of the kernel's speed.
// Only benchmarks use this.
#pragma once

#include <chrono>

#include "simd/vec.hpp"

namespace tonari {
namespace {

// Repeats `burst`, which returns how many operations it did, for about `seconds`.
template <class Burst>
double measured_rate(double seconds, Burst&& burst) {
  using clock = std::chrono::steady_clock;
  double operations = 0, elapsed = 0;
  const auto start = clock::now();
  while (elapsed < seconds) {
    operations += burst();
    elapsed = std::chrono::duration<double>(clock::now() - start).count();
  }
  return operations / elapsed;
}

// SUMS is the number of independent sums: as many as the registers can hold, so that no sum waits for another.
template <int SUMS, class V, class Step>
double measured_steps(double seconds, double operations, V start, const Step& step) {
  constexpr int repeats = 10000;
  V sums[SUMS];
  for (V& sum : sums) sum = start;
  const double rate = measured_rate(seconds, [&] {
    for (int i = 0; i < repeats; ++i) {
#pragma GCC unroll 32
      for (int j = 0; j < SUMS; ++j) sums[j] = step(sums[j]);
    }
    return repeats * SUMS * operations;
  });
  for (const V& sum : sums) {
    volatile auto sink = sum[0];
    (void)sink;
  }
  return rate;
}

template <int SUMS>
double peak_f32(double seconds) {
  using Floats = Register<float>;
  const Floats a = 0.999f, b = 0.001f;
  return measured_steps<SUMS>(seconds, 2.0 * Floats::lanes, Floats(0.5f), [=](Floats sum) { return fma(a, b, sum); });
}

// DOT::add adds four products of bytes per lane, as in exact/screen_tile.hpp.
template <int SUMS, class DOT>
double peak_i8(double seconds) {
  using Int32s = Register<std::int32_t>;
  const Int32s a = 0x01020304, b = 0x01010101;
  return measured_steps<SUMS>(seconds, 8.0 * Int32s::lanes, Int32s(1), [&](Int32s sum) {
    // Keeps the products in the loop. This changes a copy. If every step changed `a` itself, GCC would move registers
    // and keep sums in memory, which takes up to three times as long as the products.
    auto query = a.parts.raw;
#if TONARI_NEON
    asm volatile("" : "+w"(query));
#else
    asm volatile("" : "+x"(query));
#endif
    return DOT::add(sum, Int32s(query), b);
  });
}

}  // namespace
}  // namespace tonari
