// Insertion into W queues that are sorted descending. A smaller value than the head removes the head: larger entries
// move one place towards the head, and the value takes the free place.
//
//   new[p] = old[p + 1] > x ? old[p + 1] : old[p] > x ? x : old[p]
#pragma once

#include "select/lanes.hpp"

namespace tonari {
namespace {

// Inserts x into positions [0, size) in lanes `who`, where it is before the head. Inlined, so that x and `who` stay in
// registers.
template <bool COUNT, class Key>
[[gnu::always_inline]] inline void insert_sorted(Key* keys, Key* indices, std::int64_t size, const Entries<Key>& x,
                                                 const LaneMask<Key>& who, std::int64_t* updates) {
  constexpr int W = kWidth<Key>;
  const Entries<Key> inserted = choose(who, x, no_entries<Key>());  // the largest entry moves nothing
  auto here = Entries<Key>::load(keys, indices);
  LaneMask<Key> larger = who;  // where old[p] > x
  for (std::int64_t p = 0;; ++p) {
    count_updates<COUNT>(updates, p, larger);
    Entries<Key> filled = choose(larger, inserted, here);
    if (p + 1 < size) {
      here = Entries<Key>::load(keys + (p + 1) * W, indices + (p + 1) * W);
      larger = before(inserted, here);
      filled = choose(larger, here, filled);
    }
    filled.store(keys + p * W, indices + p * W);
    if (p + 1 == size || !any(larger)) return;
  }
}

}  // namespace
}  // namespace tonari
