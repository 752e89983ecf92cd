// The walk of the edges that leave components, one function per instruction set.
#pragma once

#include "spanning/forest.hpp"

namespace tonari {

std::int64_t leaving_walk_generic(Forest&, std::int64_t, std::int64_t, std::int64_t);
#if TONARI_X86
std::int64_t leaving_walk_avx2(Forest&, std::int64_t, std::int64_t, std::int64_t);
std::int64_t leaving_walk_avx512(Forest&, std::int64_t, std::int64_t, std::int64_t);
#elif TONARI_ARM64
std::int64_t leaving_walk_neon(Forest&, std::int64_t, std::int64_t, std::int64_t);
#endif

}  // namespace tonari
