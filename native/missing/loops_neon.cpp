#include "missing/loops_tile.hpp"

namespace tonari {

const MissingLoops missing_loops_neon = {screen, value};

}  // namespace tonari
