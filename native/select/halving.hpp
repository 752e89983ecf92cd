// A bound on the k-th smallest key by halving the range of keys: no key moves and no branch depends on the data but the
// one that ends it. Passes over integers, which the compiler vectorises.
//
//   low <= k-th smallest <= high;   count keys <= middle;   k or more: high = middle, fewer: low = middle + 1
#pragma once

#include <cstdint>
#include <type_traits>

namespace tonari {
namespace {

template <class Key>
struct Bound {
  Key key;             // no smaller than the k-th smallest
  std::int64_t count;  // keys at or below it; if more than k + slack, it is the k-th smallest itself
};

// Halfway, rounded down.
struct MiddleKey {
  template <class Key>
  Key operator()(Key low, Key high) {
    using Bits = std::make_unsigned_t<Key>;
    return low + static_cast<Key>((static_cast<Bits>(high) - static_cast<Bits>(low)) >> 1);
  }
};

// Stops as soon as at most `slack` too many lie at or below; 1 <= k <= count. `middle` chooses where to cut
// [low, high), and any choice in that range is right.
template <class Key, class Middle = MiddleKey>
Bound<Key> at_least_kth(const Key* keys, std::int64_t count, std::int64_t k, std::int64_t slack, Middle middle = {}) {
  Key low = keys[0], high = keys[0];
  for (std::int64_t i = 0; i < count; ++i) {
    low = keys[i] < low ? keys[i] : low;
    high = keys[i] > high ? keys[i] : high;
  }
  std::int64_t held = count;
  while (low < high) {
    const Key tried = middle(low, high);
    const Key cut = tried < low ? low : tried < high ? tried : high - 1;
    Key below = 0;  // as wide as a key, so that counting fills the same lanes
    for (std::int64_t i = 0; i < count; ++i) below += keys[i] <= cut;
    const bool enough = below >= k;
    high = enough ? cut : high;
    low = enough ? low : cut + 1;
    held = enough ? below : held;
    if (held <= k + slack && enough) break;
  }
  return {high, held};
}

}  // namespace
}  // namespace tonari
