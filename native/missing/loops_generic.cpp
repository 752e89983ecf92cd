#include "missing/loops_tile.hpp"

namespace tonari {

const MissingLoops missing_loops_generic = {screen, value};

}  // namespace tonari
