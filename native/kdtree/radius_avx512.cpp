// The walk within a radius for AVX-512; kdtree/radius_tile.hpp has the walk itself.
#include "kdtree/radius_tile.hpp"

namespace tonari {

std::unique_ptr<TreeRadius> tree_radius_avx512(const TreeRadiusTask& task, std::int64_t begin, std::int64_t end) {
  return tree_radius_tile(task, begin, end);
}

}  // namespace tonari
