// The walk of the edges that leave components for every processor; spanning/leaving_tile.hpp has the walk itself.
#include "spanning/leaving_tile.hpp"

namespace tonari {

std::int64_t leaving_walk_generic(Forest& forest, std::int64_t begin, std::int64_t end, std::int64_t budget) {
  return leaving_walk_tile(forest, begin, end, budget);
}

}  // namespace tonari
