#include "missing/loops_tile.hpp"

namespace tonari {

const MissingLoops missing_loops_avx512_vpopcntdq = {screen, value};

}  // namespace tonari
