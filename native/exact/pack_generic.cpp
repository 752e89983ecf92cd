// The loops of packing for every processor, in registers of two float64.
#include "exact/pack_tile.hpp"

namespace tonari {

const PackLoops pack_loops_generic = kPackLoops;

}  // namespace tonari
