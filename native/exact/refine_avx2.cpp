// Exact values for AVX2, in registers of four float64: the same bits as in registers of any other width, since
// exact/refine_tile.hpp adds in the defined order.
#include "exact/key_lists_tile.hpp"
#include "exact/refine_tile.hpp"
#include "exact/refines.hpp"

namespace tonari {

void exact_values_avx2(Metric metric, const ExactQuery& query, const RowsView& points, const std::int64_t* ids,
                       std::int64_t count, double* values) {
  exact_values_tile(metric, query, points, ids, count, values);
}

void column_values_avx2(Metric metric, const ExactQuery& query, const double* columns, std::int64_t stride,
                        std::int64_t d, std::int64_t count, double* values) {
  column_values_tile(metric, query, columns, stride, d, count, values);
}

void square_estimates_avx2(const float* queries, std::int64_t m, const float* points, std::int64_t d,
                           std::int64_t count, float* estimates, std::int64_t stride) {
  square_estimates_tile(queries, m, points, d, count, estimates, stride);
}

KeyLists key_lists_avx2() { return key_lists_tile(); }

}  // namespace tonari
