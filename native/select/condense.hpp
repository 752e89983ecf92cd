// Keeps the smallest of entries whose columns ascend: a bound on the k-th smallest key by halving, then a compaction.
#pragma once

#include <limits>

#include "compact.hpp"
#include "halving.hpp"

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
  Key kth = std::numeric_limits<Key>::min();  // the bound itself need not be a key
  for (std::int64_t i = 0; i < count; ++i) kth = keys[i] <= bound.key && keys[i] > kth ? keys[i] : kth;
  std::int64_t ties = k;  // entries with that key that are no larger
  for (std::int64_t i = 0; i < count; ++i) ties -= keys[i] < kth;
  std::int64_t at = -1;
  while (ties > 0) ties -= keys[++at] == kth;
  return {kth, columns[at]};
}

template <class Key>
struct Condensed {
  std::int64_t count;  // entries left, in their order; at least k
  Key bound;           // at least k of them lie at or below it
};

// Keeps the k smallest (key, column) pairs and at most `slack` others; k <= count.
template <class Key>
Condensed<Key> condense(Key* keys, std::int32_t* columns, std::int64_t count, std::int64_t k, std::int64_t slack) {
  const Bound<Key> bound = at_least_kth(keys, count, k, slack);
  std::int64_t cut = count;
  if (bound.count > k + slack) {  // more ties with the k-th than there is room for: the first of them stay
    std::int64_t ties = k;
    for (std::int64_t i = 0; i < count; ++i) ties -= keys[i] < bound.key;
    for (cut = 0; ties > 0; ++cut) ties -= keys[cut] == bound.key;
  }
  const auto* from = static_cast<const std::int32_t*>(columns);
  return {compact<false>(bound.key, cut, keys, from, count, keys, columns), bound.key};
}

}  // namespace
}  // namespace tonari
