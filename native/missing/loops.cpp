#include "missing/loops.hpp"

namespace tonari {

const MissingLoops& missing_loops(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512 && cpu_features().avx512_vpopcntdq) return missing_loops_avx512_vpopcntdq;
  if (isa >= Isa::avx512) return missing_loops_avx512;
  if (isa >= Isa::avx2) return missing_loops_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return missing_loops_neon;
#endif
  (void)isa;
  return missing_loops_generic;
}

}  // namespace tonari
