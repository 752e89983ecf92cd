#include "missing/loops_tile.hpp"

namespace tonari {

const MissingLoops missing_loops_avx2 = {screen, value};

}  // namespace tonari
