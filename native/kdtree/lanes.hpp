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
    typename HALF::F first, second;
  };
  struct K {
    typename HALF::K first, second;
  };
  static F load(const Value* p) { return {HALF::load(p), HALF::load(p + HALF::lanes)}; }
  static F set1(Value x) { return {HALF::set1(x), HALF::set1(x)}; }
  static F add(F a, F b) { return {HALF::add(a.first, b.first), HALF::add(a.second, b.second)}; }
  static F sub(F a, F b) { return {HALF::sub(a.first, b.first), HALF::sub(a.second, b.second)}; }
  static F mul(F a, F b) { return {HALF::mul(a.first, b.first), HALF::mul(a.second, b.second)}; }
  static F fma(F a, F b, F c) { return {HALF::fma(a.first, b.first, c.first), HALF::fma(a.second, b.second, c.second)}; }
  static F min(F a, F b) { return {HALF::min(a.first, b.first), HALF::min(a.second, b.second)}; }
  static F max(F a, F b) { return {HALF::max(a.first, b.first), HALF::max(a.second, b.second)}; }
  static F abs(F a) { return {HALF::abs(a.first), HALF::abs(a.second)}; }
  static std::uint32_t less_equal(F a, F b) {
    return HALF::less_equal(a.first, b.first) | HALF::less_equal(a.second, b.second) << HALF::lanes;
  }
  static K keys(F bounds, F lowest) {
    return {HALF::keys(bounds.first, lowest.first), HALF::keys(bounds.second, lowest.second)};
  }
  static K load_keys(const Key* p) { return {HALF::load_keys(p), HALF::load_keys(p + HALF::lanes)}; }
  static void store_keys(Key* p, K a) {
    HALF::store_keys(p, a.first);
    HALF::store_keys(p + HALF::lanes, a.second);
  }
  static K min_keys(K a, K b) { return {HALF::min_keys(a.first, b.first), HALF::min_keys(a.second, b.second)}; }
  static Key smallest(K a) { return HALF::smallest(HALF::min_keys(a.first, a.second)); }
  static std::uint32_t equal(K a, Key key) { return HALF::equal(a.first, key) | HALF::equal(a.second, key) << HALF::lanes; }
  static K done(K a, int lane) { return {HALF::done(a.first, lane), HALF::done(a.second, lane - HALF::lanes)}; }
};

}  // namespace
}  // namespace tonari
