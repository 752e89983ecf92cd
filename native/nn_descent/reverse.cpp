#include "nn_descent/reverse.hpp"

#include <algorithm>

#include "nn_descent/lists.hpp"

namespace tonari {

void add_reverse(const ReverseTask& task, std::int64_t column, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t ahead = 16;  // entries to prefetch ahead, since the rows that they name are scattered
  const auto span = static_cast<std::uint64_t>(end - begin);
  const std::int32_t* entry = task.entries + column;
  for (std::int64_t u = 0; u < task.n; ++u, entry += task.list) {
    if (u + ahead < task.n) {
      const std::int64_t later = entry[ahead * task.list] & kIdMask;
      if (static_cast<std::uint64_t>(later - begin) < span) {
        __builtin_prefetch(task.counts + later, 1);
        __builtin_prefetch(task.behind + later * task.reverse, 1);
      }
    }
    if (*entry < 0) continue;
    const std::int64_t v = *entry & kIdMask;
    if (static_cast<std::uint64_t>(v - begin) >= span || task.counts[v] >= task.reverse) continue;
    task.behind[v * task.reverse + task.counts[v]++] = static_cast<std::int32_t>(u) | (*entry & kNew);
  }
}

void end_reverse(const ReverseTask& task, std::int64_t begin, std::int64_t end) {
  for (std::int64_t v = begin; v < end; ++v) {
    std::int32_t* row = task.behind + v * task.reverse;
    std::fill(row + task.counts[v], row + task.reverse, kMissing);
  }
}

}  // namespace tonari
