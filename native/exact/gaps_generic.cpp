// The loop over boxes in portable C++.
#include "exact/gaps_tile.hpp"

namespace tonari {

const AddGaps gaps_generic = add_gaps;

}  // namespace tonari
