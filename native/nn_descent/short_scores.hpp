// Scores of contracted rows in float32: sums of (f(q) - f(x))^2. The distance of points is at least
//
//   (|f^(q) - f^(x)| - error) / scale,
//
// where f^ are the rows in memory (exact/form.hpp has the contraction; `error` covers their rounding). So these scores,
// which read a fraction of a row, rule out most points that cannot be among the best of a row.
#pragma once

#include "nn_descent/scores.hpp"

namespace tonari {
namespace {

class ShortScores {
 public:
  explicit ShortScores(const DescentTask& task)
      : shorts_(task.shorts),
        rooted_(takes_root(task.metric)),
        view_{.data = shorts_.rows, .n = task.points.n, .d = shorts_.columns, .dtype = Dtype::f32},
        ahead_(view_) {
    const std::int64_t padded = (shorts_.columns + Floats::lanes - 1) / Floats::lanes * Floats::lanes;
    query_ = room_.get(padded);
    std::fill_n(query_, padded, 0.0F);
  }

  bool exist() const { return shorts_.rows != nullptr; }

  void open(std::int64_t u) { std::copy_n(shorts_.rows + u * shorts_.columns, shorts_.columns, query_); }

  // No point whose value is at most `worst` has a score above this.
  float limit(double worst) const {
    if (!(worst <= std::numeric_limits<float>::max())) return std::numeric_limits<float>::infinity();
    const double reach = worst + worst * 0x1p-23 + 0x1p-148;  // may be rounded to `worst`
    const double gamma = (static_cast<double>(shorts_.columns) / 4 + 32) * 0x1p-24;
    const double length = (rooted_ ? reach : std::sqrt(reach)) * shorts_.scale + shorts_.error;
    return static_cast<float>(length * length * (1 + 2 * gamma + 0x1p-20) + 0x1p-120);
  }

  void operator()(const std::int32_t* ids, std::int64_t count, float* scores) const {
    for (std::int64_t j = 0; j < count; ++j) {
      if (j + Ahead::kRows < count) ahead_(ids[j + Ahead::kRows]);
      scores[j] = score_of<SquareScore>(query_, shorts_.rows + ids[j] * shorts_.columns, shorts_.columns);
    }
  }

 private:
  const ShortRows shorts_;
  const bool rooted_;
  const RowsView view_;
  const Ahead ahead_;
  Room<float> room_;
  float* query_;
};

}  // namespace
}  // namespace tonari
