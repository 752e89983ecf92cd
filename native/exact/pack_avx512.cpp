// The loops of packing for AVX-512, in registers of eight float64.
#include "exact/pack_tile.hpp"

namespace tonari {

const PackLoops pack_loops_avx512 = kPackLoops;

}  // namespace tonari
