// The capabilities of this processor, detected once.
#pragma once

#include <string>
#include <vector>

namespace tonari {

// The levels of x86-64 are ordered: each one implies all before it.
enum class Isa : int { generic, avx2, avx512, amx, neon };

struct CpuFeatures {
  bool avx2 = false;              // AVX2, FMA, F16C and BMI2, if the operating system saves their registers
  bool avx_vnni = false;          // int8 dot products on 256 bits
  bool avx512 = false;            // F, BW, DQ, VL
  bool avx512_vnni = false;       // int8 dot products
  bool avx512_vpopcntdq = false;  // counts the bits set in each 32-bit word
  bool amx = false;               // TILE, INT8, BF16, if the operating system allows tiles in this process
  bool neon_dot = false;          // int8 dot products of aarch64, all of which have NEON
};

const CpuFeatures& cpu_features();
const char* isa_name(Isa isa);
std::vector<Isa> supported_isas();

}  // namespace tonari
