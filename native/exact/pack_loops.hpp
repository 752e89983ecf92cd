// The loops over a row's elements that packing consists of, one table per instruction set (exact/pack_tile.hpp).
//
// A row is padded(d) float64 values, of which those after the first d are zeros. So no loop needs code for the last
// elements, and zeros change no sum. Sums have the same order on every instruction set, so packed rows and norms have
// the same bits.
#pragma once

#include <cstddef>

#include "exact/form.hpp"
#include "exact/kernels.hpp"

namespace tonari {

// The properties of a row's elements that determine the step of int8.
struct Span {
  double largest = 0;              // |x|
  bool whole = true;               // whether all elements are whole numbers
  double lowest = 0, highest = 0;  // the ends of the range of such elements and 0
};

// The numbers of a row that the certificate needs: the size of the row, of the rounded row, and of their difference.
// For products these are Euclidean norms; for an elementwise metric, sums or maxima of the terms that its struct
// computes.
struct Norms {
  double exact = 0, rounded = 0, difference = 0;
};

struct PackLoops {
  // Reads row i of an array and converts it to the form; NaN where the form cannot represent it.
  RowTerms (*read)(const Form& form, const RowsView& rows, std::int64_t i, double* row);

  // products = rows matrix, for rows of padded(d) values and a matrix of `width` columns in panels (exact/form.hpp).
  void (*multiply)(const double* rows, std::int64_t count, std::int64_t d, const double* matrix, std::int64_t width,
                   double* products);

  // moments += rows^T products, in panels as well.
  void (*add_moments)(const double* rows, std::int64_t count, std::int64_t d, const double* products,
                      std::int64_t width, double* moments);

  // Contracts `count` form rows of padded(d) values to padded(columns) values each, and sets the errors of their terms.
  void (*contract)(const Form& form, const double* rows, std::int64_t count, RowTerms* terms, double* contracted);

  Span (*span)(const double* row, std::int64_t d);

  // Rounds a row to bfloat16 or float32. `elements` are multiplied by the factor, a power of two; `rounded` are not.
  void (*round)(Precision precision, const double* row, std::int64_t d, double factor, std::byte* elements,
                double* rounded);

  // Rounds a row to steps of `step`, between -limit - 1 and limit; `offset` is added to each element. Returns the sum
  // of the elements before that.
  std::int32_t (*round_int8)(const double* row, std::int64_t d, double step, double limit, int offset,
                             std::byte* elements, double* rounded);

  Norms (*measure)(Metric metric, const double* exact, const double* rounded, std::int64_t d);
};

const PackLoops& pack_loops(Isa isa);

extern const PackLoops pack_loops_generic;
#if TONARI_X86
extern const PackLoops pack_loops_avx2, pack_loops_avx512;
#elif TONARI_ARM64
extern const PackLoops pack_loops_neon;
#endif

}  // namespace tonari
