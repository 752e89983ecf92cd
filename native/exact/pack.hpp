// Packing: converts original rows to form rows and those to rounded rows in a kernel's layout, and measures all norms.
//
// The screen multiplies rounded rows; the certificate bounds their differences from the form rows. Nothing is assumed
// about the data: |x|, |x - x^| and |x^| are computed in float64 and rounded up.
#pragma once

#include "core/aligned_bytes.hpp"
#include "exact/form.hpp"
#include "exact/kernels.hpp"

namespace tonari {

struct Norms;

// Whether errors are measured, or taken as zero where no certificate is needed.
enum class Errors { measured, ignored };

// The packed copy of a run of points. Rows beyond `count` pad the last group and never survive.
class PackedPoints {
 public:
  PackedPoints(const Kernel& kernel, const Form& form, const RowsView& points, std::int64_t begin, std::int64_t end,
               Errors errors = Errors::measured);

  PointsView view() const;
  std::int64_t base() const { return base_; }
  std::int64_t count() const { return count_; }
  std::int64_t groups() const { return groups_; }
  std::int64_t bytes() const;
  const Kernel& kernel() const { return *kernel_; }

 private:
  void keep_errors(const Form& form, std::int64_t point, double gamma, double term, const Norms& norms);

  const Kernel* kernel_;
  std::int64_t base_, count_, groups_;
  AlignedBytes data_;
  std::int64_t data_bytes_;
  std::vector<float> low_, error_query_, error_rest_, error_own_, group_error_query_, group_error_rest_, group_scale_;
  std::vector<std::int32_t> correction_;
};

// A block of packed queries, padded to whole tiles.
struct PackedQueries {
  PackedQueries() = default;
  PackedQueries(const Kernel& kernel, const Form& form, const RowsView& queries, std::int64_t begin, std::int64_t end,
                Errors errors = Errors::measured);

  QueriesView view() const;

  std::int64_t count = 0;
  int tiles = 0;
  AlignedBytes data;
  std::vector<float> norm, rest, step;
  std::vector<double> shift;  // what the score leaves out (query_term)
  std::vector<char> beyond;   // rows too large for the screen
};

int packed_depth(const Kernel& kernel, std::int64_t d);

}  // namespace tonari
