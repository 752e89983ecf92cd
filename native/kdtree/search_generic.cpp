#include "kdtree/search_tile.hpp"
#include "kdtree/searches.hpp"

namespace tonari {

std::int64_t tree_search_generic(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                                 TreeVisits& visits) {
  return tree_search_tile(task, begin, end, budget, visits);
}

}  // namespace tonari
