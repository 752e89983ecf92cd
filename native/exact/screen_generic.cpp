// The screen in portable C++: four lanes, which any compiler maps to baseline vector registers.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"

namespace tonari {
namespace {

struct Portable {
  static constexpr int lanes = 4;
  struct F {
    float v[lanes];
  };
  template <class Function>
  static F each(Function&& f) {
    F out;
    for (int i = 0; i < lanes; ++i) out.v[i] = f(i);
    return out;
  }
  static F zero() { return set1(0.0f); }
  static F set1(float x) {
    return each([&](int) { return x; });
  }
  static F load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static void store(float* p, F a) {
    for (int i = 0; i < lanes; ++i) p[i] = a.v[i];
  }
  static F add(F a, F b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F sub(F a, F b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F mul(F a, F b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F div(F a, F b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  static F fma(F a, F b, F c) { return add(mul(a, b), c); }
  static F min(F a, F b) {
    return each([&](int i) { return b.v[i] < a.v[i] ? b.v[i] : a.v[i]; });
  }
  static F max(F a, F b) {
    return each([&](int i) { return b.v[i] > a.v[i] ? b.v[i] : a.v[i]; });
  }
  static F abs(F a) {
    return each([&](int i) { return a.v[i] < 0 ? -a.v[i] : a.v[i]; });
  }
  static std::uint32_t less_equal(F a, F b) {
    std::uint32_t mask = 0;
    for (int i = 0; i < lanes; ++i) mask |= static_cast<std::uint32_t>(a.v[i] <= b.v[i]) << i;
    return mask;
  }
};

constexpr int kPoints = 4, kVectors = 2;
constexpr Layout kLayout{.point_group = kPoints, .query_tile = kVectors * Portable::lanes};

double peak_f32(double seconds) {
  Portable::F sums[8];
  for (auto& sum : sums) sum = Portable::set1(0.5f);
  const auto a = Portable::set1(0.999f), b = Portable::set1(0.001f);
  const double rate = measured_rate(seconds, [&] {
    for (int i = 0; i < 10000; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) sums[j] = Portable::fma(sums[j], a, b);
    }
    return 10000.0 * 8 * Portable::lanes * 2;
  });
  volatile float sink = sums[0].v[0] + sums[7].v[3];
  (void)sink;
  return rate;
}

constexpr char kSuffix[] = "/float32/generic";
constexpr auto kTable = float32_kernels<Portable, kSuffix, kPoints, kVectors>(
    Elementwise{}, Kernel{.precision = Precision::float32, .isa = Isa::generic, .layout = kLayout, .peak = peak_f32});

}  // namespace

std::span<const Kernel> generic_kernels() { return kTable.kernels; }

}  // namespace tonari
