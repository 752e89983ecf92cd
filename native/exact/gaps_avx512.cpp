// The loop over boxes for AVX-512.
#include "exact/gaps_tile.hpp"

namespace tonari {

const AddGaps gaps_avx512 = add_gaps;

}  // namespace tonari
