// Min-max heap of a fixed size (Atkinson et al. 1986, as matsumoto2015 uses it, section V-B, algorithms 4 to 6).
//
//   level 0           least of all               children of p: 2p + 1, 2p + 2
//   level 1     greatest    greatest             even levels: no larger than anything below them
//   level 2    least  least least least ...      odd levels: no smaller
//
// It is full from the start: a new item replaces the greatest, so no item ever moves up.
#pragma once

#include <bit>
#include <cstdint>

namespace tonari {
namespace {

template <class Item>
class MinMaxHeap {
 public:
  // Makes a heap of items [0, count), in place.
  MinMaxHeap(Item* items, std::int64_t count) : items_(items), count_(count) {
    for (std::int64_t p = count / 2 - 1; p >= 0; --p) {
      const bool least = std::bit_width(static_cast<std::uint64_t>(p) + 1) % 2 == 1;
      least ? trickle<true>(p) : trickle<false>(p);
    }
  }

  const Item& greatest() const { return items_[greatest_at()]; }

  // Replaces the greatest item by a smaller one.
  void replace_greatest(Item item) {
    const std::int64_t p = greatest_at();
    items_[p] = item;
    if (items_[p] < items_[0]) swap(p, 0);
    if (p > 0) trickle<false>(p);
  }

  // Removes the least item.
  Item take_least() {
    const Item least = items_[0];
    items_[0] = items_[--count_];
    trickle<true>(0);
    return least;
  }

 private:
  std::int64_t greatest_at() const {
    if (count_ < 3) return count_ - 1;
    return items_[1] < items_[2] ? 2 : 1;
  }
  void swap(std::int64_t p, std::int64_t q) {
    const Item item = items_[p];
    items_[p] = items_[q];
    items_[q] = item;
  }

  // Moves the item at p, which is on a level of least (or greatest) items, down to its place.
  template <bool LEAST>
  void trickle(std::int64_t p) {
    const auto before = [this](std::int64_t a, std::int64_t b) {
      return LEAST ? items_[a] < items_[b] : items_[b] < items_[a];
    };
    while (2 * p + 1 < count_) {
      std::int64_t best = 2 * p + 1;
      if (best + 1 < count_ && before(best + 1, best)) ++best;
      for (std::int64_t q = 4 * p + 3; q < count_ && q < 4 * p + 7; ++q) best = before(q, best) ? q : best;
      if (!before(best, p)) return;
      swap(best, p);
      if (best <= 2 * p + 2) return;  // a child: everything below it is in order
      const std::int64_t parent = (best - 1) / 2;
      if (before(parent, best)) swap(parent, best);
      p = best;
    }
  }

  Item* items_;
  std::int64_t count_;
};

}  // namespace
}  // namespace tonari
