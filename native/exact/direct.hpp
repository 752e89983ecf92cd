// Searches so small that a screen would take longer than all exact values: no form, no packed points.
#pragma once

#include "exact/refine.hpp"

namespace tonari {

struct DirectSearch {
  Metric metric;
  Isa isa;
  RowsView queries, points;
  std::int64_t k;
  const std::int64_t* self_ids;  // for every query, the point that it must not find, or -1; or null
  // Query i is compared with points listed[begins[i]], ..., listed[ends[i] - 1], which ascend; null: with all points.
  const std::int64_t *listed = nullptr, *begins = nullptr, *ends = nullptr;
};

// The k nearest points of queries [begin, end), written to the start of the outputs; Value is the type of returned
// distances. Where there are fewer than k, the last entries are -1 at infinity (-infinity for similarities).
template <class Value, class Index>
void search_directly(const DirectSearch& search, std::int64_t begin, std::int64_t end, Value* distances,
                     Index* indices);

}  // namespace tonari
