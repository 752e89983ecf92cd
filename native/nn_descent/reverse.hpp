// Reverse lists: for each point, the rows that have it among their hubs, the first columns of the lists.
#pragma once

#include <cstdint>

namespace tonari {

struct ReverseTask {
  std::int64_t n = 0;
  std::int64_t list = 0;     // number of columns of `entries`
  std::int64_t reverse = 0;  // number of columns of `behind`
  const std::int32_t* entries = nullptr;
  std::int32_t* counts = nullptr;  // (n,): number of entries in each row of `behind` so far
  std::int32_t* behind = nullptr;  // (n, reverse)
};

// Appends each row u to the reverse list of the point that its entry in `column` names, if the point is in [begin,
// end). Columns are handled in ascending order, so a point's rows are in order of (column, row); only the first
// `reverse` are kept.
void add_reverse(const ReverseTask& task, std::int64_t column, std::int64_t begin, std::int64_t end);

// Marks the unfilled places of rows [begin, end) as missing.
void end_reverse(const ReverseTask& task, std::int64_t begin, std::int64_t end);

}  // namespace tonari
