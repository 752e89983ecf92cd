// The loop over boxes for AVX2.
#include "exact/gaps_tile.hpp"

namespace tonari {

const AddGaps gaps_avx2 = add_gaps;

}  // namespace tonari
