// The scan of bits, one function per instruction set.
#pragma once

#include "bits/scan.hpp"

namespace tonari {

void bit_scan_generic(const BitTask&);
#if TONARI_X86
void bit_scan_avx2(const BitTask&);
void bit_scan_avx512(const BitTask&);
#elif TONARI_ARM64
void bit_scan_neon(const BitTask&);
#endif

}  // namespace tonari
