// Directions for a contracted form, along which the form rows of a sample vary most.
//
// Any V with V^T V <= I is correct, so nothing here has to converge; the better V is, the fewer candidates are left.
#pragma once

#include "core/cpu.hpp"
#include "exact/form.hpp"

namespace tonari {

// V of shape (d, count): a basis of nearly the space in which every step-th row has its largest second moments. It is
// orthonormal except for a factor just below 1 and possibly columns of zeros. Subspace iteration, B <- X^T (X B) with
// columns made orthonormal in between (Halko, Martinsson, Tropp, Finding structure with randomness, SIAM Review 53,
// 2011, algorithm 4.4), that begins with rows of the sample.
Directions principal_directions(const Form& form, const RowsView& rows, std::int64_t step, std::int64_t count, Isa isa);

// Every step-th row as the screen sees it, before rounding: form.columns() values each, NaN where it is beyond range.
void screened_rows(const Form& form, const RowsView& rows, std::int64_t step, double* out, Isa isa);

// found[i][j] = <rows[i], others[j]> for `count` rows and `of` others of d values, summed in float64.
void products(const double* rows, std::int64_t count, const double* others, std::int64_t of, std::int64_t d,
              double* found, Isa isa);

}  // namespace tonari
