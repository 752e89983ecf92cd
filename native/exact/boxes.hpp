// Boxes around small runs of points (cells), in few contracted columns: which cells can hold an answer of a query.
//
//   low_i <= f(x)_i <= high_i               for every point x of a cell, in whole steps, rounded outwards
//   gap_i = max(low_i - f(q)_i, f(q)_i - high_i, 0)
//   |q' - x'|^2 >= |f(q) - f(x)|^2 >= sum gap_i^2
//
// A point survives a query whose threshold is t only if |f(q) - f(x)| is at most s, with s as in exact/balls.hpp. So a
// cell whose gaps are longer than s is passed over (docs/exactness.md, "Boxes around codes"). Ends of boxes are bytes:
// 0 stands for everything below and 255 for everything above the range, which is right because to clamp two numbers to
// a range never moves them apart.
#pragma once

#include <cstdint>

#include "core/cpu.hpp"

namespace tonari {

constexpr std::int32_t kBoxSteps = 255;       // steps of the range of a column
constexpr std::int32_t kBoxParts = 16;        // queries are rounded outwards to this part of a step
constexpr std::int64_t kMostBoxColumns = 64;  // so that a sum of squared gaps is below 2^31

// Rows of a few contracted columns, NaN where a row is beyond the range of the screen.
struct SketchedRows {
  const float* rows = nullptr;
  std::int64_t count = 0, columns = 0;
};

// Writes an order of the rows in which every run of `cell` rows from the start is near: runs are halved along the
// column in which they spread most. Rows beyond the range come last.
void order_cells(const SketchedRows& sketch, std::int64_t cell, std::int64_t* order);

// The steps of boxes: column values from `least` on, in steps of `step`; a row is off by at most `error` of its length.
struct BoxSteps {
  double least = 0, step = 1, error = 0;
};

// Writes the boxes of runs of `cell` rows in an order: byte c * stride + g of `low` and `high` belongs to column c of
// run g. A row beyond the range is in a box without ends.
void write_boxes(const SketchedRows& sketch, const std::int64_t* order, std::int64_t cell, const BoxSteps& steps,
                 std::uint8_t* low, std::uint8_t* high, std::int64_t stride);

// The ends, in parts of a step, between which the query's row is: one pair for each column.
void query_ends(const double* row, std::int64_t columns, const BoxSteps& steps, std::int32_t* low, std::int32_t* high);

// Boxes [begin, end) of all runs, and the ends of a query.
struct BoxesView {
  const std::uint8_t *low = nullptr, *high = nullptr;
  std::int64_t columns = 0, stride = 0;
};
// squares[g] = the sum of squared gaps between the query and box g, in parts of a step, for g in [begin, end).
void box_squares(const BoxesView& boxes, const std::int32_t* query_low, const std::int32_t* query_high,
                 std::int64_t begin, std::int64_t end, std::int32_t* squares, Isa isa);

// The positions of the `wanted` smallest squares, the first of equal ones; in ascending order of position.
void nearest_boxes(const std::int32_t* squares, std::int64_t count, std::int64_t wanted, std::int64_t* found);

}  // namespace tonari
