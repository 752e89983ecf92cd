#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "bind/binds.hpp"
#include "nn_descent/reverse.hpp"
#include "nn_descent/round.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Entries = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using NewEntries = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Terms = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// One round, and the arrays that it reads and writes.
struct BoundRound {
  DescentTask task;
  DescentRound round;
  Rows points;
  Entries entries, behind;
  std::optional<Terms> terms;
  std::optional<Numbers> order;
  NewEntries kept, indices;
  Output distances;
  Sums sums;
};

ReverseTask reverse_task(const Entries& entries, const Counts& counts, const NewEntries& behind) {
  return {.n = static_cast<std::int64_t>(entries.shape(0)),
          .list = static_cast<std::int64_t>(entries.shape(1)),
          .reverse = static_cast<std::int64_t>(behind.shape(1)),
          .entries = entries.data(),
          .counts = counts.data(),
          .behind = behind.data()};
}

}  // namespace

void bind_descent(Module& module) {
  module.def(
      "add_reverse",
      [](const Entries& entries, std::int64_t column, std::int64_t begin, std::int64_t end, const Counts& counts,
         const NewEntries& behind) {
        const ReverseTask task = reverse_task(entries, counts, behind);
        Unlocked unlocked;
        add_reverse(task, column, begin, end);
      },
      nb::arg("entries"), nb::arg("column"), nb::arg("begin"), nb::arg("end"), nb::arg("counts").noconvert(),
      nb::arg("behind").noconvert(),
      "Append rows to those of points [begin, end) that a column names; see nn_descent/reverse.hpp.");
  module.def(
      "end_reverse",
      [](const Entries& entries, std::int64_t begin, std::int64_t end, const Counts& counts, const NewEntries& behind) {
        const ReverseTask task = reverse_task(entries, counts, behind);
        Unlocked unlocked;
        end_reverse(task, begin, end);
      },
      nb::arg("entries"), nb::arg("begin"), nb::arg("end"), nb::arg("counts").noconvert(),
      nb::arg("behind").noconvert(), "Mark what was not filled as missing.");
  module.def(
      "has_point_terms",
      [](const std::string& metric, const Rows& points) {
        return has_terms(metric_named(metric), view_of(points).dtype);
      },
      nb::arg("metric"), nb::arg("points"), "Whether a round wants point_terms.");
  module.def(
      "point_terms",
      [](const std::string& metric, const Rows& points, std::int64_t begin, std::int64_t end, const Terms& terms) {
        const Metric chosen = metric_named(metric);
        const RowsView rows = view_of(points);
        Unlocked unlocked;
        point_terms(chosen, rows, begin, end, terms.data());
      },
      nb::arg("metric"), nb::arg("points"), nb::arg("begin"), nb::arg("end"), nb::arg("terms").noconvert(),
      "What scores in float32 need to know of points [begin, end): two numbers each.");

  Class<BoundRound>(module, "DescentRound", "One round of NN-Descent; see nn_descent/round.hpp.")
      .def(
          "__init__",
          [](BoundRound* self, const std::string& isa, const std::string& metric, const Rows& points,
             std::optional<Terms> terms, const Entries& entries, const Entries& behind, std::int64_t hubs,
             std::int64_t breadth, std::int64_t width, std::int64_t boundary, std::optional<Numbers> order,
             const NewEntries& kept, const Output& distances, const NewEntries& indices, const Sums& sums) {
            const bool doubles = distances.dtype() == nb::dtype<double>();
            if (!doubles && distances.dtype() != nb::dtype<float>()) {
              throw nb::type_error("distances are not float32 or float64");
            }
            const RowsView rows = view_of(points);
            if (has_terms(metric_named(metric), rows.dtype) && !terms) throw nb::value_error("point terms are missing");
            const DescentTask task{
                .metric = metric_named(metric),
                .points = rows,
                .terms = terms ? terms->data() : nullptr,
                .list = static_cast<std::int64_t>(entries.shape(1)),
                .hubs = hubs,
                .reverse = static_cast<std::int64_t>(behind.shape(1)),
                .breadth = breadth,
                .width = width,
                .k = static_cast<std::int64_t>(indices.shape(1)),
                .boundary = boundary,
                .entries = entries.data(),
                .behind = behind.data(),
                .order = order ? order->data() : nullptr,
                .double_output = doubles,
                .kept = kept.data(),
                .distances = distances.data(),
                .indices = indices.data(),
                .sums = sums.data()};
            new (self) BoundRound{task,   descent_round(isa_named(isa)), points,           entries, behind,
                                  std::move(terms), std::move(order), kept, indices, distances, sums};
          },
          nb::arg("isa"), nb::arg("metric"), nb::arg("points"), nb::arg("terms").none(), nb::arg("entries"),
          nb::arg("behind"), nb::arg("hubs"), nb::arg("breadth"), nb::arg("width"), nb::arg("boundary"),
          nb::arg("order").none(), nb::arg("kept").noconvert(), nb::arg("distances").noconvert(),
          nb::arg("indices").noconvert(), nb::arg("sums").noconvert())
      .def(
          "run",
          [](const BoundRound& self, std::int64_t begin, std::int64_t end) {
            Unlocked unlocked;
            return self.round(self.task, begin, end);
          },
          nb::arg("begin"), nb::arg("end"),
          "Do rows from `begin` to `end` of their order; how many of their first entries are not those of before.");
}

}  // namespace tonari
