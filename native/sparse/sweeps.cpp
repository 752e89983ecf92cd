#include "sparse/sweeps.hpp"

namespace tonari {

const SparseSweeps& sparse_sweeps(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return sparse_sweeps_avx512;
  if (isa >= Isa::avx2) return sparse_sweeps_avx2;
#endif
  (void)isa;
  return sparse_sweeps_generic;
}

}  // namespace tonari
