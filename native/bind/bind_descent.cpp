#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "bind/binds.hpp"
#include "nn_descent/lists.hpp"
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

// A round of NN-Descent, together with the arrays that it reads and writes.
struct BoundRound {
  DescentTask task;
  DescentRound round;
  Rows points;
  Entries entries, behind;
  std::optional<Terms> terms, shorts;
  std::optional<Numbers> order;
  std::optional<NewEntries> kept;
  NewEntries indices;
  Output distances;
  Sums sums;
};

constexpr std::int64_t kMostPoints = kNew;  // an id shares its 32 bits with the marks
// most points that a row is compared with; three times this fits in 32 bits
constexpr std::int64_t kMostMet = std::int64_t{1} << 28;

// Checks the counts of reverse neighbours of rows [begin, end), since they determine where the task writes.
ReverseTask reverse_task(const Entries& entries, const Counts& counts, const NewEntries& behind, std::int64_t begin,
                         std::int64_t end) {
  const auto n = static_cast<std::int64_t>(entries.shape(0)), reverse = static_cast<std::int64_t>(behind.shape(1));
  check_number("rows of the entries", n, 0, kMostPoints);
  check_aligned("entries", entries);
  check_shape("counts", counts, {n});
  check_shape("behind", behind, {n, reverse});
  check_range("points", begin, end, 0, n);
  check_numbers("counts", counts.data() + begin, end - begin, 0, reverse + 1);
  return {.n = static_cast<std::int64_t>(entries.shape(0)),
          .list = static_cast<std::int64_t>(entries.shape(1)),
          .reverse = static_cast<std::int64_t>(behind.shape(1)),
          .entries = entries.data(),
          .counts = counts.data(),
          .behind = behind.data()};
}

// Checks that entries of lists are missing or ids of n points, with or without marks.
void check_entries(const char* name, const std::int32_t* entries, std::int64_t count, std::int64_t n) {
  const auto outside = [n](std::int32_t entry) { return entry >= 0 && (entry & kIdMask) >= n; };
  bool any = false;
  for (std::int64_t i = 0; i < count; ++i) any |= outside(entries[i]);
  if (!any) return;
  const std::int64_t at = std::find_if(entries, entries + count, outside) - entries;
  refuse(std::string(name) + " has the id " + std::to_string(entries[at] & kIdMask) + " at place " +
         std::to_string(at) + ", expected 0 to " + std::to_string(n - 1));
}

// Checks all lists by reading them once, which takes little time: a round reads them several times.
void check_round(const DescentTask& task, const Entries& entries, const Entries& behind,
                 const std::optional<Numbers>& order) {
  const std::int64_t n = task.points.n;
  check_entries("entries", task.entries, static_cast<std::int64_t>(entries.size()), n);
  check_entries("behind", task.behind, static_cast<std::int64_t>(behind.size()), n);
  if (order) check_numbers("order", order->data(), n, 0, n);
}

}  // namespace

void bind_descent(Module& module) {
  module.def(
      "add_reverse",
      [](const Entries& entries, std::int64_t column, std::int64_t begin, std::int64_t end, const Counts& counts,
         const NewEntries& behind) {
        check_number("column", column, 0, static_cast<std::int64_t>(entries.shape(1)) - 1);
        const ReverseTask task = reverse_task(entries, counts, behind, begin, end);
        Unlocked unlocked;
        add_reverse(task, column, begin, end);
      },
      nb::arg("entries").noconvert(), nb::arg("column"), nb::arg("begin"), nb::arg("end"),
      nb::arg("counts").noconvert(), nb::arg("behind").noconvert(),
      "Append rows to those of points [begin, end) that a column names; see nn_descent/reverse.hpp.");
  module.def(
      "end_reverse",
      [](const Entries& entries, std::int64_t begin, std::int64_t end, const Counts& counts, const NewEntries& behind) {
        const ReverseTask task = reverse_task(entries, counts, behind, begin, end);
        Unlocked unlocked;
        end_reverse(task, begin, end);
      },
      nb::arg("entries").noconvert(), nb::arg("begin"), nb::arg("end"), nb::arg("counts").noconvert(),
      nb::arg("behind").noconvert(), "Mark what was not filled as missing.");
  module.def(
      "has_point_terms",
      [](const std::string& metric, const Rows& points) {
        return has_terms(metric_named(metric), view_of(points, "points").dtype);
      },
      nb::arg("metric"), nb::arg("points").noconvert(), "Whether a round wants point_terms.");
  module.def(
      "point_terms",
      [](const std::string& metric, const Rows& points, std::int64_t begin, std::int64_t end, const Terms& terms) {
        const Metric chosen = metric_named(metric);
        const RowsView rows = view_of(points, "points");
        check_range("points", begin, end, 0, rows.n);
        check_shape("terms", terms, {rows.n, 2});
        Unlocked unlocked;
        point_terms(chosen, rows, begin, end, terms.data());
      },
      nb::arg("metric"), nb::arg("points").noconvert(), nb::arg("begin"), nb::arg("end"), nb::arg("terms").noconvert(),
      "What scores in float32 need to know of points [begin, end): two numbers each.");

  Class<BoundRound>(module, "DescentRound", "One round of NN-Descent; see nn_descent/round.hpp.")
      .def(
          "__init__",
          [](BoundRound* self, const std::string& isa, const std::string& metric, const Rows& points,
             std::optional<Terms> terms, std::optional<Terms> shorts, double scale, double error,
             const Entries& entries, const Entries& behind, std::int64_t hubs, std::int64_t breadth, std::int64_t width,
             std::int64_t boundary, std::optional<Numbers> order, std::optional<NewEntries> kept,
             const Output& distances, const NewEntries& indices, const Sums& sums) {
            const Metric chosen = metric_named(metric);
            const DescentRound round = descent_round(isa_named(isa));
            const bool doubles = is_double("distances", distances.dtype());
            const RowsView rows = view_of(points, "points");
            const std::int64_t n = rows.n;
            const auto list = static_cast<std::int64_t>(entries.shape(1));
            const auto reverse = static_cast<std::int64_t>(behind.shape(1));
            const auto k = static_cast<std::int64_t>(indices.shape(1));
            check_number("rows of the points", n, 0, kMostPoints);
            check_shape("entries", entries, {n, list});
            check_shape("behind", behind, {n, reverse});
            check_number("hubs", hubs, 0, list);
            check_number("breadth", breadth, 1, list);
            check_at_least("width", width, 1);
            check_number("boundary", boundary, -1, n);
            require(list <= kMostMet && hubs + reverse < kMostMet / (breadth + 1),
                    "a row would meet too many others, expected less than 2**28 (hubs + columns of behind) * breadth");
            require(terms.has_value() || !has_terms(chosen, rows.dtype),
                    "terms are None, expected those of point_terms() for this metric");
            if (terms) check_shape("terms", *terms, {n, 2});
            if (shorts) {
              require(is_euclidean(chosen), "shorts are given, expected None for this metric");
              check_shape("shorts", *shorts, {n, static_cast<std::int64_t>(shorts->shape(1))});
              require(scale > 0 && error >= 0, "scale and error are not positive");
            }
            if (order) check_shape("order", *order, {n});
            if (kept) check_shape("kept", *kept, {n, list});
            check_shape("distances", distances, {n, k});
            check_shape("indices", indices, {n, k});
            check_shape("sums", sums, {n});
            const DescentTask task{.metric = chosen,
                                   .points = rows,
                                   .terms = terms ? terms->data() : nullptr,
                                   .shorts = shorts ? ShortRows{.rows = shorts->data(),
                                                                .columns = static_cast<std::int64_t>(shorts->shape(1)),
                                                                .scale = scale,
                                                                .error = error}
                                                    : ShortRows{},
                                   .list = list,
                                   .hubs = hubs,
                                   .reverse = reverse,
                                   .breadth = breadth,
                                   .width = width,
                                   .k = k,
                                   .boundary = boundary,
                                   .entries = entries.data(),
                                   .behind = behind.data(),
                                   .order = order ? order->data() : nullptr,
                                   .double_output = doubles,
                                   .kept = kept ? kept->data() : nullptr,
                                   .distances = distances.data(),
                                   .indices = indices.data(),
                                   .sums = sums.data()};
            {
              Unlocked unlocked;
              check_round(task, entries, behind, order);
            }
            new (self) BoundRound{task,
                                  round,
                                  points,
                                  entries,
                                  behind,
                                  std::move(terms),
                                  std::move(shorts),
                                  std::move(order),
                                  std::move(kept),
                                  indices,
                                  distances,
                                  sums};
          },
          nb::arg("isa"), nb::arg("metric"), nb::arg("points").noconvert(), nb::arg("terms").noconvert().none(),
          nb::arg("shorts").noconvert().none(), nb::arg("scale"), nb::arg("error"), nb::arg("entries").noconvert(),
          nb::arg("behind").noconvert(), nb::arg("hubs"), nb::arg("breadth"), nb::arg("width"), nb::arg("boundary"),
          nb::arg("order").noconvert().none(), nb::arg("kept").noconvert().none(), nb::arg("distances").noconvert(),
          nb::arg("indices").noconvert(), nb::arg("sums").noconvert())
      .def(
          "run",
          [](const BoundRound& self, std::int64_t begin, std::int64_t end) {
            check_range("rows", begin, end, 0, self.task.points.n);
            Unlocked unlocked;
            return self.round(self.task, begin, end);
          },
          nb::arg("begin"), nb::arg("end"),
          "Do rows from `begin` to `end` of their order; how many of their first entries are not those of before.");
}

}  // namespace tonari
