// The search through a tree for AVX-512: one register holds a float32 of each of a node's 16 children, two act as one
// for float64. kdtree/search_tile.hpp has the walk.
#include "kdtree/search_tile.hpp"
#include "kdtree/searches.hpp"

namespace tonari {

std::int64_t tree_search_avx512(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                                TreeVisits& visits) {
  return tree_search_tile(task, begin, end, budget, visits);
}

}  // namespace tonari
