// The refine step, one function per instruction set.
#pragma once

#include "exact/refine.hpp"

namespace tonari {

void exact_values_generic(Metric, const ExactQuery&, const RowsView&, const std::int64_t*, std::int64_t, double*);
void column_values_generic(Metric, const ExactQuery&, const double*, std::int64_t, std::int64_t, std::int64_t, double*);
void square_estimates_generic(const float*, std::int64_t, const float*, std::int64_t, std::int64_t, float*,
                              std::int64_t);
#if TONARI_X86
void exact_values_avx2(Metric, const ExactQuery&, const RowsView&, const std::int64_t*, std::int64_t, double*);
void exact_values_avx512(Metric, const ExactQuery&, const RowsView&, const std::int64_t*, std::int64_t, double*);
void column_values_avx2(Metric, const ExactQuery&, const double*, std::int64_t, std::int64_t, std::int64_t, double*);
void column_values_avx512(Metric, const ExactQuery&, const double*, std::int64_t, std::int64_t, std::int64_t, double*);
void square_estimates_avx2(const float*, std::int64_t, const float*, std::int64_t, std::int64_t, float*, std::int64_t);
void square_estimates_avx512(const float*, std::int64_t, const float*, std::int64_t, std::int64_t, float*,
                             std::int64_t);
#elif TONARI_ARM64
void exact_values_neon(Metric, const ExactQuery&, const RowsView&, const std::int64_t*, std::int64_t, double*);
void column_values_neon(Metric, const ExactQuery&, const double*, std::int64_t, std::int64_t, std::int64_t, double*);
void square_estimates_neon(const float*, std::int64_t, const float*, std::int64_t, std::int64_t, float*, std::int64_t);
#endif

}  // namespace tonari
