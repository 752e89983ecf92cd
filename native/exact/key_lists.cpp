#include "exact/key_lists.hpp"

namespace tonari {

KeyLists key_lists(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return key_lists_avx512();
  if (isa >= Isa::avx2) return key_lists_avx2();
#elif TONARI_ARM64
  if (isa == Isa::neon) return key_lists_neon();
#endif
  (void)isa;
  return key_lists_generic();
}

}  // namespace tonari
