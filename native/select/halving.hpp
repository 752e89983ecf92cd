// Finds a bound on the k-th smallest key by halving the range of keys: no key moves, and no branch depends on the data
// except the one that ends the loop.
//
//   lower <= k-th smallest <= upper;   count keys <= middle;   k or more: upper = middle, fewer: lower = middle + 1
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "simd/vec.hpp"

namespace tonari {
namespace {

template <class Key>
struct Bound {
  Key key;             // a bound that is at least the k-th smallest key
  std::int64_t count;  // number of keys at or below it; if above k + slack, the bound is the k-th smallest key
};

// Halfway, rounded down.
struct MiddleKey {
  template <class Key>
  Key operator()(Key lower, Key upper) {
    using Bits = std::make_unsigned_t<Key>;
    return lower + static_cast<Key>((static_cast<Bits>(upper) - static_cast<Bits>(lower)) >> 1);
  }
};

// Passes over keys, a register at a time. The last keys are in a register of their own, padded with the largest
// possible key, so that a pass has no remainder.
template <class Key>
class KeyPasses {
 public:
  KeyPasses(const Key* keys, std::int64_t count) : keys_(keys), whole_(count / kLanes * kLanes) {
    Key rest[kLanes];
    for (Key& key : rest) key = std::numeric_limits<Key>::max();
    std::memcpy(rest, keys + whole_, static_cast<std::size_t>(count - whole_) * sizeof(Key));
    rest_ = Lanes::load(rest);
  }
  // The number of keys at or below a limit, which must not be the largest possible key.
  std::int64_t count_up_to(Key limit) const {
    const Lanes limits = limit;
    Lanes found = count(Lanes(0), rest_ <= limits), more = 0;
    std::int64_t i = 0;
    for (; i + 2 * kLanes <= whole_; i += 2 * kLanes) {
      found = count(found, load(i) <= limits);
      more = count(more, load(i + kLanes) <= limits);
    }
    if (i < whole_) found = count(found, load(i) <= limits);
    return fold(found + more, [](auto a, auto b) { return a + b; });
  }
  // The largest key that is at or below the limit.
  Key greatest_up_to(Key limit) const {
    const Lanes limits = limit, least = std::numeric_limits<Key>::min();
    Lanes greatest = choose(rest_ <= limits, rest_, least);
    for (std::int64_t i = 0; i < whole_; i += kLanes) {
      const Lanes keys = load(i);
      greatest = max(choose(keys <= limits, keys, least), greatest);
    }
    return fold(greatest, [](auto a, auto b) { return max(a, b); });
  }

 private:
  using Lanes = Register<Key>;
  static constexpr int kLanes = Lanes::lanes;
  Lanes load(std::int64_t i) const { return Lanes::load(keys_ + i); }

  const Key* keys_;
  const std::int64_t whole_;
  Lanes rest_;
};

// Finds the bound, and stops as soon as at most k + `slack` keys are at or below it. 1 <= k <= count. `middle` chooses
// where to cut [lower, upper); any choice in that range is correct.
template <class Key, class Middle = MiddleKey>
Bound<Key> at_least_kth(const Key* keys, std::int64_t count, std::int64_t k, std::int64_t slack, Middle middle = {}) {
  Key lower = keys[0], upper = keys[0];
  for (std::int64_t i = 0; i < count; ++i) {
    lower = keys[i] < lower ? keys[i] : lower;
    upper = keys[i] > upper ? keys[i] : upper;
  }
  const KeyPasses<Key> passes(keys, count);
  std::int64_t held = count;
  while (lower < upper) {
    const Key tried = middle(lower, upper);
    const Key cut = tried < lower ? lower : tried < upper ? tried : upper - 1;
    const std::int64_t found = passes.count_up_to(cut);
    const bool enough = found >= k;
    upper = enough ? cut : upper;
    lower = enough ? lower : cut + 1;
    held = enough ? found : held;
    if (held <= k + slack && enough) break;
  }
  return {upper, held};
}

}  // namespace
}  // namespace tonari
