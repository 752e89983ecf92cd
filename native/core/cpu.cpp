#include "core/cpu.hpp"

#if TONARI_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif TONARI_ARM64
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tonari {
namespace {

#if TONARI_X86
// Asks Linux for the 8 KB of tile state that a process needs (Documentation/arch/x86/xstate.rst).
bool request_amx_tiles() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}
#endif

CpuFeatures detect() {
  CpuFeatures found;
#if TONARI_X86
  __builtin_cpu_init();
  found.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  found.avx512 = found.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  found.avx512_vnni = found.avx512 && __builtin_cpu_supports("avx512vnni");
  found.avx512_vpopcntdq = found.avx512 && __builtin_cpu_supports("avx512vpopcntdq");
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (found.avx2 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) found.avx_vnni = eax & (1u << 4);
  if (found.avx512_vnni && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
    const bool bf16 = edx & (1u << 22), tile = edx & (1u << 24), int8 = edx & (1u << 25);
    found.amx = bf16 && tile && int8 && request_amx_tiles();
  }
#elif TONARI_ARM64
  found.neon_dot = getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#endif
  return found;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::generic: return "generic";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::amx: return "amx";
    case Isa::neon: return "neon";
  }
  return "";
}

std::vector<Isa> supported_isas() {
#if TONARI_ARM64
  return {Isa::generic, Isa::neon};
#else
  std::vector<Isa> levels{Isa::generic};
  const CpuFeatures& cpu = cpu_features();
  if (cpu.avx2) levels.push_back(Isa::avx2);
  if (cpu.avx512) levels.push_back(Isa::avx512);
  if (cpu.amx) levels.push_back(Isa::amx);
  return levels;
#endif
}

}  // namespace tonari
