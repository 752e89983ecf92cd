// The rows of a round, one function per instruction set.
#pragma once

#include "nn_descent/round.hpp"

namespace tonari {

std::int64_t descent_round_generic(const DescentTask&, std::int64_t, std::int64_t);
#if TONARI_X86
std::int64_t descent_round_avx2(const DescentTask&, std::int64_t, std::int64_t);
std::int64_t descent_round_avx512(const DescentTask&, std::int64_t, std::int64_t);
#elif TONARI_ARM64
std::int64_t descent_round_neon(const DescentTask&, std::int64_t, std::int64_t);
#endif

}  // namespace tonari
