// Merges sorted lists of neighbours into other sorted lists, each of which keeps its k nearest.
//
// A list ascends by (distance, id), or descends by distance where larger is nearer, with ids ascending among equals;
// missing entries have the id -1 and come last. A point in both lists has the same distance in both (exact values), so
// its second entry follows its first among entries of equal distance, and is dropped there.
#pragma once

#include <cstdint>
#include <vector>

namespace tonari {

// One list with room for k entries.
template <class Value, class Id>
struct NeighborList {
  Value* values;
  Id* ids;
  std::int64_t k;

  bool has(std::int64_t at) const { return at < k && ids[at] >= 0; }
};

// Merges `other` into `kept`, which is as long afterwards as before; `room` is scratch.
template <class Value, class Id>
void merge_list(const NeighborList<Value, Id>& kept, const NeighborList<const Value, const Id>& other, bool descending,
                std::vector<Value>& room_values, std::vector<Id>& room_ids) {
  if (!kept.has(0)) {  // `kept` is empty, as for the many rows that are in one list only
    for (std::int64_t at = 0; at < kept.k && other.has(at); ++at) {
      kept.values[at] = other.values[at];
      kept.ids[at] = other.ids[at];
    }
    return;
  }
  room_values.assign(kept.values, kept.values + kept.k);
  room_ids.assign(kept.ids, kept.ids + kept.k);
  std::int64_t ours = 0;
  std::int64_t theirs = 0;
  std::int64_t made = 0;
  const auto listed = [&](Value value, Id id) {
    for (std::int64_t at = made - 1; at >= 0 && kept.values[at] == value; --at) {
      if (kept.ids[at] == id) return true;
    }
    return false;
  };
  while (made < kept.k) {
    const bool has_ours = ours < kept.k && room_ids[ours] >= 0;
    const bool has_theirs = other.has(theirs);
    if (!has_ours && !has_theirs) break;  // all further entries of `kept` are missing already
    bool take_ours = has_ours;
    if (has_ours && has_theirs) {
      const Value a = room_values[ours];
      const Value b = other.values[theirs];
      take_ours = a == b ? room_ids[ours] <= other.ids[theirs] : (descending ? a > b : a < b);
    }
    const Value value = take_ours ? room_values[ours] : other.values[theirs];
    const Id id = take_ours ? room_ids[ours] : other.ids[theirs];
    (take_ours ? ours : theirs)++;
    if (listed(value, id)) continue;
    kept.values[made] = value;
    kept.ids[made] = id;
    ++made;
  }
}

}  // namespace tonari
