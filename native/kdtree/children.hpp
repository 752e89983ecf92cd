// Compares a node's 16 children with a query at once: each gets a key, and keys have the order of the children's
// bounds.
//
// A bound is nonnegative, so its bits, taken as an integer, have its order. It is summed column by column without fused
// operations, so it has the same bits on every machine and each time that it is computed.
#pragma once

#include <limits>

#include "kdtree/columns.hpp"
#include "kdtree/search.hpp"

namespace tonari {
namespace {

template <class T>
using ChildKey = Integer<sizeof(T)>;
template <class T>
using ChildKeys = Vec<ChildKey<T>, kTreeWidth>;

template <class T>
// the key of a child that is visited already, or absent
constexpr ChildKey<T> kNoChild = std::numeric_limits<ChildKey<T>>::max();

template <class STEP, class T>
inline ChildKeys<T> child_keys(const TreeView& tree, int level, std::int64_t node, const T* query) {
  using F = Vec<T, kTreeWidth>;
  const T* box = static_cast<const T*>(tree.boxes[static_cast<std::size_t>(level)]) + node * tree.d * 2 * kTreeWidth;
  const F lowest = F::load(box);
  F sum = T{0};
  for (std::int64_t i = 0; i < tree.d; ++i, box += 2 * kTreeWidth) {
    const F q = query[i];
    const F nearest = min(max(q, F::load(box)), F::load(box + kTreeWidth));
    sum = Columns<STEP>::bound(sum, nearest - q);
  }
  const auto absent = lowest == std::numeric_limits<T>::infinity();
  return choose(absent, ChildKeys<T>(kNoChild<T>), as<ChildKey<T>>(sum));
}

template <class KEYS>
inline auto nearest_of(const KEYS& keys) {
  return fold(keys, [](auto a, auto b) { return min(a, b); });
}

}  // namespace
}  // namespace tonari
