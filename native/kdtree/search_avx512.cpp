// The search through a tree for AVX-512. One register holds a float32 for each of a node's 16 children; for float64 two
// registers are used as one. kdtree/search_tile.hpp has the search itself.
#include "kdtree/search_tile.hpp"
#include "kdtree/searches.hpp"

namespace tonari {

std::int64_t tree_search_avx512(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                                TreeVisits& visits) {
  return tree_search_tile(task, begin, end, budget, visits);
}

}  // namespace tonari
