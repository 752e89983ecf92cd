// Keeps the k smallest of entries whose columns ascend: halving finds a bound on the k-th smallest key, by which the
// entries are compacted.
#pragma once

#include "select/compact.hpp"
#include "select/halving.hpp"

namespace tonari {
namespace {

// The k-th smallest (key, column) of entries whose columns ascend.
template <class Key>
struct Pair {
  Key key;
  std::int64_t column;
};
template <class Key>
Pair<Key> kth_smallest(const Key* keys, const std::int32_t* columns, std::int64_t count, std::int64_t k) {
  const Bound<Key> bound = at_least_kth(keys, count, k, 0);
  // The bound may differ from all keys, unless ties make it exact.
  const Key kth = bound.count == k ? KeyPasses<Key>(keys, count).greatest_up_to(bound.key) : bound.key;
  std::int32_t column = 0;
  if (bound.count == k) {  // all entries with that key are among the k, up to the last one
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t found = keys[i] == kth ? columns[i] : 0;
      column = found > column ? found : column;
    }
  } else {
    std::int64_t ties = k;
    for (std::int64_t i = 0; i < count; ++i) ties -= keys[i] < kth;
    for (std::int64_t i = 0; ties > 0; ++i) {
      ties -= keys[i] == kth;
      column = columns[i];
    }
  }
  return {kth, column};
}

template <class Key>
struct Condensed {
  std::int64_t count;  // number of entries that remain, in their order; at least k
  Key bound;           // at least k of them are at or below it
};

// Keeps the k smallest (key, column) pairs and at most `slack` others. k <= count.
template <class Key>
Condensed<Key> condense(Key* keys, std::int32_t* columns, std::int64_t count, std::int64_t k, std::int64_t slack) {
  const Bound<Key> bound = at_least_kth(keys, count, k, slack);
  std::int64_t cut = count;
  if (bound.count > k + slack) {  // more keys tie with the k-th than `slack` allows: the first ones are kept
    std::int64_t ties = k;
    for (std::int64_t i = 0; i < count; ++i) ties -= keys[i] < bound.key;
    for (cut = 0; ties > 0; ++cut) ties -= keys[cut] == bound.key;
  }
  const auto* from = static_cast<const std::int32_t*>(columns);
  return {compact<false>(bound.key, cut, keys, from, count, keys, columns), bound.key};
}

}  // namespace
}  // namespace tonari
