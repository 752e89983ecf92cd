// Registers side by side that act as one. Internal linkage.
#pragma once

#include <cstdint>

namespace tonari {
namespace {

template <class HALF>
struct Twice {
  static constexpr int lanes = 2 * HALF::lanes;
  using Value = typename HALF::Value;
  using Key = typename HALF::Key;
  struct F {
    typename HALF::F low, high;
  };
  struct K {
    typename HALF::K low, high;
  };
  static F load(const Value* p) { return {HALF::load(p), HALF::load(p + HALF::lanes)}; }
  static F set1(Value x) { return {HALF::set1(x), HALF::set1(x)}; }
  static F add(F a, F b) { return {HALF::add(a.low, b.low), HALF::add(a.high, b.high)}; }
  static F sub(F a, F b) { return {HALF::sub(a.low, b.low), HALF::sub(a.high, b.high)}; }
  static F mul(F a, F b) { return {HALF::mul(a.low, b.low), HALF::mul(a.high, b.high)}; }
  static F fma(F a, F b, F c) { return {HALF::fma(a.low, b.low, c.low), HALF::fma(a.high, b.high, c.high)}; }
  static F min(F a, F b) { return {HALF::min(a.low, b.low), HALF::min(a.high, b.high)}; }
  static F max(F a, F b) { return {HALF::max(a.low, b.low), HALF::max(a.high, b.high)}; }
  static F abs(F a) { return {HALF::abs(a.low), HALF::abs(a.high)}; }
  static std::uint32_t less_equal(F a, F b) {
    return HALF::less_equal(a.low, b.low) | HALF::less_equal(a.high, b.high) << HALF::lanes;
  }
  static K keys(F bounds, F lowest) {
    return {HALF::keys(bounds.low, lowest.low), HALF::keys(bounds.high, lowest.high)};
  }
  static K load_keys(const Key* p) { return {HALF::load_keys(p), HALF::load_keys(p + HALF::lanes)}; }
  static void store_keys(Key* p, K a) {
    HALF::store_keys(p, a.low);
    HALF::store_keys(p + HALF::lanes, a.high);
  }
  static K min_keys(K a, K b) { return {HALF::min_keys(a.low, b.low), HALF::min_keys(a.high, b.high)}; }
  static Key smallest(K a) { return HALF::smallest(HALF::min_keys(a.low, a.high)); }
  static std::uint32_t equal(K a, Key key) { return HALF::equal(a.low, key) | HALF::equal(a.high, key) << HALF::lanes; }
  static K done(K a, int lane) { return {HALF::done(a.low, lane), HALF::done(a.high, lane - HALF::lanes)}; }
};

}  // namespace
}  // namespace tonari
