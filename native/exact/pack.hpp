// Packing: converts original rows to form rows, rounds these into a kernel's layout, and measures all norms.
//
// The screen multiplies rounded rows; the certificate bounds their differences from the form rows. Nothing is assumed
// about the data: |x|, |x - x^| and |x^| are computed in float64 and rounded up.
#pragma once

#include <memory>

#include "core/aligned_bytes.hpp"
#include "exact/form.hpp"
#include "exact/kernels.hpp"

namespace tonari {

class Balls;

// Whether errors are measured, or set to zero because no certificate is needed.
enum class Errors { measured, ignored };

// Groups of rows in a kernel's layout, and the bounds of their scores. Rows beyond `count` pad the last group and never
// survive.
struct PackedGroups {
  PackedGroups(const Kernel& kernel, std::int64_t columns, std::int64_t count);

  PointsView view(std::int64_t base) const;
  std::int64_t bytes() const;
  // Writes all arrays, one after another, or reads them: bytes() in total.
  void write(std::byte* to) const;
  void read(const std::byte* from);
  // Sets the bounds of the row at a place, rounded so that they remain bounds; its score starts at `term` - `own`.
  void bound(std::int64_t place, double term, double own, double query, double rest);
  // Lets a row beyond the screen's range always survive, so that its exact value decides.
  void let_pass(std::int64_t place);

  std::int64_t group, count, groups, data_bytes;
  AlignedBytes data;
  std::vector<float> low, error_query, error_rest, error_own, group_error_query, group_error_rest, group_scale;
  std::vector<std::int32_t> correction;
};

// The packed copy of a run of points, and the contracted copy of the same points if there is a look.
class PackedPoints {
 public:
  // `look`: the form of a look before the screen, or null.
  PackedPoints(const Kernel& kernel, const Form& form, const Form* look, const RowsView& points, std::int64_t begin,
               std::int64_t end, Errors errors = Errors::measured);
  // Reads the points that write() wrote, packed for the same kernel in the same form, without a look.
  PackedPoints(const Kernel& kernel, const Form& form, std::int64_t begin, std::int64_t end, const std::byte* from);
  PackedPoints(PackedPoints&& other) noexcept;
  ~PackedPoints();

  PointsView view() const { return packed_.view(base_); }
  std::int64_t base() const { return base_; }
  std::int64_t count() const { return packed_.count; }
  std::int64_t groups() const { return packed_.groups; }
  std::int64_t bytes() const;
  // Writes the packed points, without the contracted copy of a look.
  void write(std::byte* to) const { packed_.write(to); }
  // The value of bytes() for `count` points without a look.
  static std::int64_t bytes_of(const Kernel& kernel, const Form& form, std::int64_t count);
  const Kernel& kernel() const { return *kernel_; }
  // The same points in the same groups, in the form of the look; null if there is no look.
  const PackedPoints* contracted() const { return contracted_.get(); }
  // The balls around the groups; only for a contracted copy.
  const Balls& balls() const { return *balls_; }

 private:
  PackedPoints(const Kernel& kernel, std::int64_t columns, std::int64_t begin, std::int64_t end);

  const Kernel* kernel_;
  std::int64_t base_;
  PackedGroups packed_;
  std::unique_ptr<PackedPoints> contracted_;
  std::unique_ptr<Balls> balls_;
};

// A block of packed queries, padded to whole tiles.
struct PackedQueries {
  PackedQueries() = default;
  PackedQueries(const Kernel& kernel, const Form& form, const RowsView& queries, std::int64_t begin, std::int64_t end,
                Errors errors = Errors::measured);
  // Packs queries for a screen, and packs them in `contracted` in the form of the look before that screen.
  PackedQueries(const Kernel& kernel, const Form& form, const Form& look, const RowsView& queries, std::int64_t begin,
                std::int64_t end, PackedQueries& contracted);

  QueriesView view() const;

  std::int64_t count = 0;
  int tiles = 0;
  AlignedBytes data;
  std::vector<float> norm, rest, step;
  std::vector<double> shift;  // for each query, the part that the score omits (query_term)
  std::vector<char> beyond;   // for each query, whether it is too large for the screen

 private:
  PackedQueries(const Kernel& kernel, const Form& form, std::int64_t count);
};

int packed_depth(const Kernel& kernel, std::int64_t d);

}  // namespace tonari
