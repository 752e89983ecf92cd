#include "nn_descent/round.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "exact/form.hpp"
#include "nn_descent/rounds.hpp"

namespace tonari {

DescentRound descent_round(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return descent_round_avx512;
  if (isa >= Isa::avx2) return descent_round_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return descent_round_neon;
#endif
  (void)isa;
  return descent_round_generic;
}

bool has_terms(Metric metric, Dtype dtype) { return dtype != Dtype::f64 && (is_angular(metric) || is_product(metric)); }

void point_terms(Metric metric, const RowsView& points, std::int64_t begin, std::int64_t end, float* terms) {
  // For norms outside of this range float32 sums may overflow or underflow: such points are not scored.
  constexpr double least = 1e-15, most = 1e15;
  const auto d = static_cast<std::size_t>(points.d);
  std::vector<double> row(d), squares(d);
  const auto norm_of = [&] {
    for (std::size_t i = 0; i < d; ++i) squares[i] = row[i] * row[i];
    return std::sqrt(lane_sum(squares.data(), points.d));
  };
  for (std::int64_t v = begin; v < end; ++v) {
    load_row(points, v, row.data());
    const double whole = norm_of();
    double factor = 1, error = whole;
    if (is_angular(metric)) {
      if (removes_mean(metric)) remove_mean(row.data(), points.d);
      const double norm = removes_mean(metric) ? norm_of() : whole;
      factor = norm == 0 ? 0 : 1 / norm;
      error = whole * factor;
      if (norm != 0 && !(norm >= least && whole <= most)) factor = std::numeric_limits<double>::quiet_NaN();
    }
    terms[2 * v] = static_cast<float>(factor);
    terms[2 * v + 1] = static_cast<float>(error);
  }
}

}  // namespace tonari
