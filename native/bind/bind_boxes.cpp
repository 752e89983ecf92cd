#include <nanobind/stl/string.h>

#include <cmath>

#include "bind/binds.hpp"
#include "exact/boxes.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Sketch = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Order = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Boxes = nb::ndarray<std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using BoxesRead = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Row = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Squares = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SquaresRead = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

SketchedRows sketched(const Sketch& sketch) {
  const SketchedRows rows{.rows = sketch.data(),
                          .count = static_cast<std::int64_t>(sketch.shape(0)),
                          .columns = static_cast<std::int64_t>(sketch.shape(1))};
  check_aligned("sketch", sketch);
  check_number("columns of the sketch", rows.columns, 1, kMostBoxColumns);
  return rows;
}

BoxSteps steps_of(double least, double step, double error) {
  require(std::isfinite(least) && std::isfinite(step) && step > 0 && error >= 0,
          "least, step, error: expected numbers");
  return {.least = least, .step = step, .error = error};
}

}  // namespace

void bind_boxes(Module& module) {
  module.def(
      "order_cells",
      [](const Sketch& sketch, std::int64_t cell, const Order& order) {
        const SketchedRows rows = sketched(sketch);
        check_at_least("cell", cell, 1);
        check_shape("order", order, {rows.count});
        Unlocked unlocked;
        order_cells(rows, cell, order.data());
      },
      nb::arg("sketch").noconvert(), nb::arg("cell"), nb::arg("order").noconvert(),
      "Writes an order of sketched rows in which every run of `cell` rows is near; see exact/boxes.hpp.");
  module.def(
      "write_boxes",
      [](const Sketch& sketch, const RowOrder& order, std::int64_t cell, double least, double step, double error,
         const Boxes& boxes, std::int64_t first) {
        const SketchedRows rows = sketched(sketch);
        const BoxSteps steps = steps_of(least, step, error);
        check_at_least("cell", cell, 1);
        check_shape("order", order, {rows.count});
        check_numbers("order", order.data(), rows.count, 0, rows.count);
        const auto cells = static_cast<std::int64_t>(boxes.shape(2));
        check_shape("boxes", boxes, {2, rows.columns, cells});
        check_range("boxes", first, first + (rows.count + cell - 1) / cell, 0, cells);
        Unlocked unlocked;
        std::uint8_t* const low = boxes.data() + first;
        write_boxes(rows, order.data(), cell, steps, low, low + rows.columns * cells, cells);
      },
      nb::arg("sketch").noconvert(), nb::arg("order").noconvert(), nb::arg("cell"), nb::arg("least"), nb::arg("step"),
      nb::arg("error"), nb::arg("boxes").noconvert(), nb::arg("first"),
      "Writes the boxes of runs of `cell` sketched rows in an order, from box `first` on.");
  module.def(
      "box_squares",
      [](const BoxesRead& boxes, const Row& query, double least, double step, double error, const std::string& isa,
         std::int64_t begin, std::int64_t end, const Squares& squares) {
        const BoxSteps steps = steps_of(least, step, error);
        const Isa chosen = isa_named(isa);
        const auto columns = static_cast<std::int64_t>(boxes.shape(1)),
                   cells = static_cast<std::int64_t>(boxes.shape(2));
        check_number("columns of the boxes", columns, 1, kMostBoxColumns);
        check_shape("boxes", boxes, {2, columns, cells});
        check_shape("query", query, {columns});
        for (std::int64_t c = 0; c < columns; ++c) require(std::isfinite(query.data()[c]), "the query is not finite");
        check_shape("squares", squares, {cells});
        check_range("boxes", begin, end, 0, cells);
        Unlocked unlocked;
        std::int32_t low[kMostBoxColumns], high[kMostBoxColumns];
        query_ends(query.data(), columns, steps, low, high);
        const BoxesView view{
            .low = boxes.data(), .high = boxes.data() + columns * cells, .columns = columns, .stride = cells};
        box_squares(view, low, high, begin, end, squares.data(), chosen);
      },
      nb::arg("boxes").noconvert(), nb::arg("query").noconvert(), nb::arg("least"), nb::arg("step"), nb::arg("error"),
      nb::arg("isa"), nb::arg("begin"), nb::arg("end"), nb::arg("squares").noconvert(),
      "Writes the sum of squared gaps between a query and each of the boxes [begin, end), in sixteenths of a step.");
  module.def(
      "nearest_boxes",
      [](const SquaresRead& squares, const Order& found) {
        const auto count = static_cast<std::int64_t>(squares.shape(0)),
                   wanted = static_cast<std::int64_t>(found.shape(0));
        check_aligned("squares", squares);
        check_aligned("found", found);
        check_number("number of boxes", wanted, 1, count);
        Unlocked unlocked;
        nearest_boxes(squares.data(), count, wanted, found.data());
      },
      nb::arg("squares").noconvert(), nb::arg("found").noconvert(),
      "Writes the positions of the smallest squares, in ascending order.");
}

}  // namespace tonari
