// The loops of packing for NEON, in registers of two float64.
#include "exact/pack_tile.hpp"

namespace tonari {

const PackLoops pack_loops_neon = kPackLoops;

}  // namespace tonari
