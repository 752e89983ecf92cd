// The search through a tree for NEON. A node has 16 children, more than a register has lanes, so four or eight registers
// are used as one. kdtree/search_tile.hpp has the search itself.
#include "kdtree/search_tile.hpp"
#include "kdtree/searches.hpp"

namespace tonari {

std::int64_t tree_search_neon(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                              TreeVisits& visits) {
  return tree_search_tile(task, begin, end, budget, visits);
}

}  // namespace tonari
