// The buffered traversal for NEON; kdtree/buffered_tile.hpp has the traversal itself.
#include "kdtree/buffered_tile.hpp"
#include "kdtree/searches.hpp"

namespace tonari {

std::unique_ptr<TreeRounds> tree_rounds_neon(const TreeTask& task, std::int64_t begin, std::int64_t end,
                                             std::int64_t buffer) {
  return tree_rounds_tile(task, begin, end, buffer);
}

}  // namespace tonari
