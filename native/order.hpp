// Ordering exact results by (key, index).
#pragma once

#include <cstdint>
#include <vector>

namespace tonari {

struct Ranked {
  double key;  // ascending: the returned value, negated where larger is nearer
  std::int64_t id;
  bool operator<(const Ranked& other) const { return key < other.key || (key == other.key && id < other.id); }
};

// Keeps the k smallest, in no order.
void keep_smallest(std::vector<Ranked>& items, std::int64_t k);

// Sorts ascending. Keys that are float32 values and ids below 2^32 share one 64-bit word and are sorted by digits.
void sort_ranked(std::vector<Ranked>& items);

}  // namespace tonari
