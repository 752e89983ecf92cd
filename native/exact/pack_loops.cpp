#include "exact/pack_loops.hpp"

namespace tonari {

const PackLoops& pack_loops(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return pack_loops_avx512;
  if (isa >= Isa::avx2) return pack_loops_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return pack_loops_neon;
#endif
  (void)isa;
  return pack_loops_generic;
}

}  // namespace tonari
