// For each point, the rows that have it among their hubs: the reverse of the lists' first columns.
#pragma once

#include <cstdint>

namespace tonari {

struct ReverseTask {
  std::int64_t n = 0;
  std::int64_t list = 0;     // columns of `entries`
  std::int64_t reverse = 0;  // columns of `behind`
  const std::int32_t* entries = nullptr;
  std::int32_t* counts = nullptr;  // (n): entries that each row of `behind` has so far
  std::int32_t* behind = nullptr;  // (n, reverse)
};

// Appends each row u to the reverse list of the point that its entry in `column` names, if that is in [begin, end). Is
// called for one column after another, so a point's rows are in order of (column, row); the rows after the first
// `reverse` are left out.
void add_reverse(const ReverseTask& task, std::int64_t column, std::int64_t begin, std::int64_t end);

// Marks the unfilled places of rows [begin, end) as missing.
void end_reverse(const ReverseTask& task, std::int64_t begin, std::int64_t end);

}  // namespace tonari
