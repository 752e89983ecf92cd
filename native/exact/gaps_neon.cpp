// The loop over boxes for NEON.
#include "exact/gaps_tile.hpp"

namespace tonari {

const AddGaps gaps_neon = add_gaps;

}  // namespace tonari
