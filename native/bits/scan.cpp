#include "bits/scan.hpp"

#include "bits/scans.hpp"

namespace tonari {

BitScan bit_scan(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512 && cpu_features().avx512_vpopcntdq) return bit_scan_avx512;
  if (isa >= Isa::avx2) return bit_scan_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return bit_scan_neon;
#endif
  (void)isa;
  return bit_scan_generic;
}

}  // namespace tonari
