// The loops of packing for AVX2, in registers of four float64.
#include "exact/pack_tile.hpp"

namespace tonari {

const PackLoops pack_loops_avx2 = kPackLoops;

}  // namespace tonari
