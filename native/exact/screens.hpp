// The tables of the screen's kernels, one per instruction set.
#pragma once

#include <span>

#include "exact/kernels.hpp"

namespace tonari {

std::span<const Kernel> generic_kernels();
#if TONARI_X86
std::span<const Kernel> avx2_kernels();
std::span<const Kernel> avx_vnni_kernels();
std::span<const Kernel> avx512_kernels();
std::span<const Kernel> amx_kernels();
#elif TONARI_ARM64
std::span<const Kernel> neon_dot_kernels();
std::span<const Kernel> neon_kernels();
#endif

}  // namespace tonari
