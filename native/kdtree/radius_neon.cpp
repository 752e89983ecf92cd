// The walk within a radius for NEON; kdtree/radius_tile.hpp has the walk itself.
#include "kdtree/radius_tile.hpp"

namespace tonari {

std::unique_ptr<TreeRadius> tree_radius_neon(const TreeRadiusTask& task, std::int64_t begin, std::int64_t end) {
  return tree_radius_tile(task, begin, end);
}

}  // namespace tonari
