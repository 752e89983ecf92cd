#include "exact/refine.hpp"

#include <cmath>

#include "exact/refines.hpp"

namespace tonari {

ExactQuery exact_query(Metric metric, const RowsView& queries, std::int64_t i) {
  ExactQuery query;
  query.row.resize(static_cast<std::size_t>(padded(queries.d)));
  load_row(queries, i, query.row.data());
  if (removes_mean(metric)) remove_mean(query.row.data(), queries.d);
  if (is_angular(metric)) {
    std::vector<double> squares(query.row);
    for (double& value : squares) value *= value;
    query.norm = std::sqrt(lane_sum(squares.data(), queries.d));
  }
  return query;
}

ExactValues exact_values(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return exact_values_avx512;
  if (isa >= Isa::avx2) return exact_values_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return exact_values_neon;
#endif
  (void)isa;
  return exact_values_generic;
}

ColumnValues column_values(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return column_values_avx512;
  if (isa >= Isa::avx2) return column_values_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return column_values_neon;
#endif
  (void)isa;
  return column_values_generic;
}

SquareEstimates square_estimates(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return square_estimates_avx512;
  if (isa >= Isa::avx2) return square_estimates_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return square_estimates_neon;
#endif
  (void)isa;
  return square_estimates_generic;
}

}  // namespace tonari
