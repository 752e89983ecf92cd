// Parts that the screens for vector units share: reading thresholds, and summing a score. Internal linkage throughout:
// each instruction set compiles its own copy.
#pragma once

#include "core/metrics.hpp"
#include "exact/kernels.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

using Floats = Register<float>;
using Int32s = Register<std::int32_t>;

// Loads thresholds as load_threshold does. Each lane of a register is as atomic as a float32, which C++ cannot express, so
// under ThreadSanitizer they are loaded one by one.
inline Floats load_thresholds(const float* p) {
#if defined(__SANITIZE_THREAD__)
  alignas(64) float lanes[Floats::lanes];
  for (int i = 0; i < Floats::lanes; ++i) lanes[i] = load_threshold(p + i);
  return Floats::load(lanes);
#else
  return Floats::load(p);
#endif
}

// The operations of a float32 screen: starting a score, adding one dimension, and joining partial sums.
struct InnerOp {  // queries are packed as -2 q', so the sum of products is the score
  static constexpr char name[] = "inner";
  static constexpr bool starts_low = true;
  static Floats step(Floats x, Floats q, Floats sum) { return fma(x, q, sum); }
  static Floats join(Floats a, Floats b) { return a + b; }
};
template <class TERM>
struct TermOp {
  static constexpr auto& name = TERM::name;
  static constexpr bool starts_low = !TERM::maximum;
  static Floats step(Floats x, Floats q, Floats sum) { return join(sum, TERM::screened(q, x)); }
  static Floats join(Floats a, Floats b) {
    if constexpr (TERM::maximum) return max(a, b);
    else return a + b;
  }
};

}  // namespace
}  // namespace tonari
