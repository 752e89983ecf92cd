#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "bind/binds.hpp"
#include "bind/open_rows.hpp"
#include "exact/directions.hpp"
#include "exact/row_block.hpp"
#include "exact/self_join.hpp"

namespace nb = nanobind;

namespace tonari {

Metric metric_named(const std::string& name) {
  for (int at = 0; at < kMetrics; ++at) {
    if (name == metric_name(static_cast<Metric>(at))) return static_cast<Metric>(at);
  }
  refuse("unknown metric " + name);
}

Isa isa_named(const std::string& name) {
  for (Isa isa : supported_isas()) {
    if (name == isa_name(isa)) return isa;
  }
  refuse("this machine cannot run " + name);
}

const Kernel& kernel_named(const std::string& name) {
  for (const Kernel* kernel : available_kernels()) {
    if (name == kernel->name) return *kernel;
  }
  refuse("no kernel " + name + " on this machine");
}

// Whether the first part of the kernel's name is this operation, such as "inner".
bool is_kernel_of(const Kernel& kernel, const std::string& operation) {
  return std::string(kernel.name).starts_with(operation + "/");
}

void check_form(const Form& form, const Kernel& kernel, const char* name, const RowsView& rows) {
  const std::string operation = is_elementwise(form.metric) ? metric_name(form.metric) : "inner";
  if (!is_kernel_of(kernel, operation)) {
    refuse(std::string("kernel ") + kernel.name + " does not compare by the metric of the form");
  }
  check_columns(name, rows, form.d);
}

void check_packed(const BoundPoints& points, const Kernel& kernel, const Form& form, Errors needed) {
  if (&points.packed.kernel() != &kernel) {
    refuse(std::string("points are packed for ") + points.packed.kernel().name + ", expected " + kernel.name);
  }
  require(points.form == &form, "points are packed in another form, expected that of the queries");
  require(needed == Errors::ignored || points.errors == Errors::measured,
          "points are packed with errors=False, expected True for an exact search");
}

void check_look(const Form* look, const Form& form) {
  if (look == nullptr) return;
  require(look->contracts() && look->metric == form.metric && look->scale == form.scale && look->centre == form.centre,
          "look: expected the form, contracted");
  require(look->columns() < form.columns(), "look: expected fewer columns than the screen compares");
}

nb::tuple counts(const Looked& looked) { return nb::make_tuple(looked.pairs, looked.looked, looked.marked); }

RowsView ordered(RowsView points, const std::optional<RowOrder>& order, bool checks) {
  if (!order) return points;
  points.order = order->data(), points.ordered = static_cast<std::int64_t>(order->shape(0));
  check_number("length of the order", points.ordered, 0, points.n);
  check_shape("order", *order, {points.ordered});
  if (checks) check_numbers("order", points.order, points.ordered, 0, points.n);
  return points;
}

void check_looked(const BoundPoints& run, const Form* look) {
  require(look != nullptr, "looks: the search has none");
  require(run.look == look, "points are packed for another look, or none; expected that of the search");
}

namespace {

using Self = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Known = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Status = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using Bytes = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SketchArray = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr std::int64_t kMostSurvivors = std::int64_t{1} << 48;  // more than any memory holds, and far from overflow

// Checks the directions along which rows are contracted; without an array there are none.
Directions checked_directions(Metric metric, const std::optional<Matrix>& array, std::int64_t d) {
  if (!array) return {};
  require(!is_elementwise(metric), "directions: only metrics of inner products have contracted forms");
  const auto count = static_cast<std::int64_t>(array->shape(1));
  check_number("number of directions", count, 1, d - 1);
  check_shape("directions", *array, {d, count});
  for (std::int64_t i = 0; i < d * count; ++i) require(std::isfinite(array->data()[i]), "a direction is not finite");
  Directions directions(array->data(), d, count);
  require(directions.stretch() <= 1, "directions: a row may be longer along them than it is; expected V^T V <= I");
  return directions;
}

// Adds a sketch of the points to the spec: an array of shape (columns, n), in the order of the packed points.
SearchSpec with_sketch(SearchSpec spec, const std::optional<SketchArray>& array, const RowsView& points) {
  if (!array) return spec;
  const auto columns = static_cast<std::int64_t>(array->shape(0));
  require(points.order != nullptr, "sketch: expected points in an order of their own");
  check_number("columns of the sketch", columns, 1, points.d);
  check_shape("sketch", *array, {columns, points.places()});
  spec.sketch = {.columns = array->data(), .count = columns, .stride = points.places()};
  return spec;
}

void check_spec(const SearchSpec& spec, const RowsView& points) {
  check_number("k", spec.k, 1, points.places());
  check_number("capacity", spec.capacity, 1, kMostSurvivors);
  check_at_least("growth", spec.growth, 0);
  check_at_least("sample_rank", spec.sample_rank, 0);
}

void check_room(const SearchSpec& spec, std::int64_t begin, std::int64_t end) {
  require(end - begin <= kMostSurvivors / (2 * spec.k + 64), "too many rows to open at once for this k");
}

// Checks that the numbers of all points in a packed run are within the points of the search.
void check_run(const BoundPoints& run, const RowsView& points) {
  check_number("end of the packed points", run.packed.base() + run.packed.count(), 0, points.places());
}

template <class Value, class Index>
void check_found(std::int64_t rows, std::int64_t k, bool double_output, std::int64_t n, const Output<Value>& distances,
                 const Output<Index>& indices, const Status& status) {
  check_type("distances", distances.dtype(), double_output ? nb::dtype<double>() : nb::dtype<float>());
  check_id_type<Index>("indices", n);
  check_shape("distances", distances, {rows, k});
  check_shape("indices", indices, {rows, k});
  check_shape("status", status, {rows});
}

// A block of queries, together with the arrays that it reads.
struct BoundBlock {
  Rows query_array;
  SpacedRows point_array;
  std::optional<Self> self_ids;
  std::optional<RowOrder> order;
  std::optional<SketchArray> sketch;
  RowsView queries, points;
  const Kernel& kernel;
  const Form& form;
  const Form* look;
  SearchSpec spec;
  RowBlock block;
  OpenRows rows;

  BoundBlock(const Kernel& chosen, const Form& in_form, const Form* of_look, const Rows& of_queries,
             const SpacedRows& of_points, std::optional<Self> own, std::optional<RowOrder> places,
             std::optional<SketchArray> drawn, const SearchSpec& asked, Isa isa, bool checks_order)
      : query_array(of_queries),
        point_array(of_points),
        self_ids(std::move(own)),
        order(std::move(places)),
        sketch(std::move(drawn)),
        queries(view_of(query_array, "queries")),
        points(ordered(view_of(point_array, "points"), order, checks_order)),
        kernel(chosen),
        form(in_form),
        look(of_look),
        spec(with_sketch(asked, sketch, points)),
        block(kernel, form, look, queries, points, spec, isa) {
    check_form(form, kernel, "queries", queries);
    check_look(look, form);
    check_columns("points", points, form.d);
    if (self_ids) check_shape("self_ids", *self_ids, {queries.n});
    check_spec(spec, points);
  }

  void open(std::int64_t begin, std::int64_t end, const std::optional<RowOrder>& places,
            const std::optional<SketchArray>& asked) {
    require(places.has_value() == asked.has_value(), "places and asked: expected both or neither");
    if (places) {
      require(spec.sketch.count > 0, "places: the search has no sketch of the points");
      check_shape("places", *places, {queries.n});
      check_numbers("places", places->data(), queries.n, 0, points.places());
      check_shape("asked", *asked, {queries.n, spec.sketch.count});
    }
    rows.reopen("queries", begin, end, 0, queries.n, [&](std::int64_t first, std::int64_t last) {
      check_room(spec, first, last);
      block.open(first, last, places ? places->data() : nullptr, asked ? asked->data() : nullptr);
    });
  }

  void check_groups(const BoundPoints& run, std::int64_t group_begin, std::int64_t group_end) const {
    rows.check();
    check_packed(run, kernel, form, Errors::measured);
    check_run(run, points);
    check_range("groups", group_begin, group_end, 0, run.packed.groups());
  }

  void screen(const BoundPoints& run, std::int64_t group_begin, std::int64_t group_end, std::int64_t stride,
              bool take_stride, bool looks) {
    check_groups(run, group_begin, group_end);
    if (looks) check_looked(run, look);
    check_at_least("stride", stride, 0);
    block.screen(run.packed, looks, group_begin, group_end, stride, take_stride);
  }

  void screen_marked(const BoundPoints& run, std::int64_t group_begin, std::int64_t group_end,
                     const Bytes<const std::uint8_t>& marks) {
    check_groups(run, group_begin, group_end);
    check_number("number of open queries", rows.count(), 1, kernel.layout.query_tile);
    check_shape("marks", marks, {group_end - group_begin});
    block.screen(run.packed, false, group_begin, group_end, 0, false, marks.data());
  }

  double reach(std::int64_t row) const {
    rows.check();
    require(!is_product(form.metric), "the values of inner products have no reach");
    check_number("row", row, 0, rows.count() - 1);
    return block.reach(row);
  }

  void lower_thresholds() {
    rows.check();
    block.lower_thresholds();
  }

  void take_thresholds(const BoundBlock& other) {
    rows.check();
    require(other.rows.begin == rows.begin && other.rows.end == rows.end, "blocks differ in their queries");
    block.take_thresholds(other.block);
  }

  void end_sample() {
    rows.check();
    check_at_least("sample_rank", spec.sample_rank, 1);
    block.end_sample();
  }

  void absorb(BoundBlock& other) {
    rows.check();
    require(&other != this, "a block cannot absorb itself");
    require(other.rows.begin == rows.begin && other.rows.end == rows.end && other.queries.data == queries.data &&
                other.points.data == points.data && &other.form == &form && other.spec.k == spec.k &&
                other.points.order == points.order && other.spec.double_output == spec.double_output,
            "blocks differ in their queries, points, order, form, k or type of distances: expected the same search");
    block.absorb(other.block);
  }

  template <class Value, class Index>
  std::int64_t finish(const Output<Value>& distances, const Output<Index>& indices, const Status& status) {
    rows.check();
    check_found<Value, Index>(rows.count(), spec.k, spec.double_output, points.n, distances, indices, status);
    Unlocked unlocked;
    return block.finish(distances.data(), indices.data(), status.data());
  }
};

// A self-join, together with the arrays that it reads.
struct BoundJoin {
  Rows point_array;
  Self self_ids;
  std::optional<RowOrder> order;
  std::optional<SketchArray> sketch;
  RowsView points;
  const Kernel& kernel;
  const Form& form;
  const Form* look;
  SearchSpec spec;
  SelfJoin join;
  OpenRows active;

  BoundJoin(const Kernel& chosen, const Form& in_form, const Form* of_look, const Rows& of_points, Self own,
            std::optional<RowOrder> places, std::optional<SketchArray> drawn, const SearchSpec& asked, Isa isa)
      : point_array(of_points),
        self_ids(std::move(own)),
        order(std::move(places)),
        sketch(std::move(drawn)),
        points(ordered(view_of(point_array, "points"), order)),
        kernel(chosen),
        form(in_form),
        look(of_look),
        spec(with_sketch(asked, sketch, points)),
        join(kernel, form, look, points, spec, isa) {
    check_form(form, kernel, "points", points);
    check_look(look, form);
    check_shape("self_ids", self_ids, {points.n});
    require(points.places() == points.n, "order: expected all points, which are the queries, too");
    check_spec(spec, points);
  }

  void open(std::int64_t begin, std::int64_t end) {
    active.reopen("points", begin, end, 0, points.n, [this](std::int64_t first, std::int64_t last) {
      check_room(spec, first, last);
      join.open(first, last);
    });
  }

  void check_active(std::int64_t begin, std::int64_t end) const {
    active.check();
    check_range("rows", begin, end, active.begin, active.end);
  }

  void check_points(const BoundPoints& run) const {
    check_packed(run, kernel, form, Errors::measured);
    check_run(run, points);
  }

  void prepare(std::int64_t begin, std::int64_t end, const BoundPoints& run) {
    check_active(begin, end);
    check_points(run);
    check_range("rows", begin, end, run.packed.base(), run.packed.base() + run.packed.count());
    if (look != nullptr) check_looked(run, look);
    join.prepare(begin, end, run.packed);
  }

  void know(std::int64_t begin, std::int64_t end, const Known& values) {
    check_active(begin, end);
    check_shape("values", values, {end - begin});
    join.know(begin, end, values.data());
  }

  template <class Value, class Index>
  std::int64_t finish(std::int64_t begin, std::int64_t end, const Output<Value>& distances,
                      const Output<Index>& indices, const Status& status, std::int64_t first, std::int64_t last) {
    check_active(begin, end);
    check_range("points", first, last, 0, points.n);
    check_found<Value, Index>(end - begin, spec.k, spec.double_output, points.n, distances, indices, status);
    Unlocked unlocked;
    return join.finish(begin, end, distances.data(), indices.data(), status.data(), first, last);
  }
};

struct BoundWorker {
  BoundJoin& join;
  JoinWorker worker;
  OpenRows rows;
  std::int64_t active_begin = 0;  // where the join's active rows began when this worker opened its rows

  explicit BoundWorker(BoundJoin& of) : join(of), worker(of.join) {}

  void open(std::int64_t begin, std::int64_t end) {
    join.active.check();
    rows.reopen("rows", begin, end, join.active.begin, join.active.end, [this](std::int64_t first, std::int64_t last) {
      worker.open(first, last);
      active_begin = join.active.begin;
    });
  }

  void screen(const BoundPoints& run, std::int64_t group_begin, std::int64_t group_end, bool both, bool looks) {
    rows.check();
    require(active_begin == join.active.begin && rows.end <= join.active.end,
            "the join has opened other rows; call open() of the worker again");
    join.check_points(run);
    check_range("groups", group_begin, group_end, 0, run.packed.groups());
    if (both) {
      require(is_kernel_of(join.kernel, "inner"), "both: only kernels of inner products serve both sides");
      const std::int64_t size = join.kernel.layout.point_group, base = run.packed.base();
      check_range("both: points", base + group_begin * size, base + std::min(group_end * size, run.packed.count()),
                  rows.end, join.active.end);
    }
    if (looks) check_looked(run, join.look);
    worker.screen(run.packed, looks, group_begin, group_end, both);
  }
};

template <class Value, class Index>
void bind_finish(Class<BoundBlock>& block, Class<BoundJoin>& join) {
  block.def("finish", &BoundBlock::finish<Value, Index>, nb::arg("distances").noconvert(),
            nb::arg("indices").noconvert(), nb::arg("status").noconvert());
  join.def("finish", &BoundJoin::finish<Value, Index>, nb::arg("begin"), nb::arg("end"),
           nb::arg("distances").noconvert(), nb::arg("indices").noconvert(), nb::arg("status").noconvert(),
           nb::arg("first"), nb::arg("last"));
}

}  // namespace

void bind_engine(Module& module) {
  module.def(
      "exact_values",
      [](const std::string& metric, const Rows& queries, const Rows& points, const Ids& indices, const Values& values) {
        const Metric chosen = metric_named(metric);
        const RowsView query_rows = view_of(queries, "queries"), point_rows = view_of(points, "points");
        const auto width = static_cast<std::int64_t>(indices.shape(1));
        check_columns("points", point_rows, query_rows.d);
        check_shape("indices", indices, {query_rows.n, width});
        check_shape("values", values, {query_rows.n, width});
        const ExactValues compute = exact_values(supported_isas().back());
        Unlocked unlocked;
        check_numbers("indices", indices.data(), query_rows.n * width, 0, point_rows.n);
        for (std::int64_t i = 0; i < query_rows.n; ++i) {
          const ExactQuery query = exact_query(chosen, query_rows, i);
          compute(chosen, query, point_rows, indices.data() + i * width, width, values.data() + i * width);
        }
      },
      nb::arg("metric"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(), nb::arg("indices").noconvert(),
      nb::arg("values").noconvert(),
      "Exact values of (queries[i], points[indices[i, j]]), in float64, before rounding to the output type.");

  Class<Form>(module, "Form", "The form in which rows are compared; see exact/form.hpp.")
      .def(
          "__init__",
          [](Form* self, const std::string& metric, std::vector<double> centre, double scale,
             const std::optional<Matrix>& directions) {
            const auto d = std::ssize(centre);
            check_number("length of the centre", d, 1, std::numeric_limits<std::int32_t>::max());
            for (const double value : centre) require(std::isfinite(value), "the centre is not finite");
            int exponent = 0;
            if (!(scale > 0) || std::frexp(scale, &exponent) != 0.5) {
              refuse("scale=" + std::to_string(scale) + ": expected a power of two, which rounds nothing");
            }
            const Metric chosen = metric_named(metric);
            const double power = is_elementwise(chosen) ? degree_of(chosen) * (exponent - 1) : 0;
            if (power != std::floor(power) || std::fabs(power) > 1000) {
              refuse("scale=" + std::to_string(scale) + ": expected one of which the power " +
                     std::to_string(degree_of(chosen)) + " is a power of two from 2^-1000 to 2^1000");
            }
            new (self) Form(chosen, scale, std::move(centre), checked_directions(chosen, directions, d));
          },
          nb::arg("metric"), nb::arg("centre"), nb::arg("scale"), nb::arg("directions").noconvert() = nb::none())
      .def_prop_ro("columns", [](const Form& form) { return form.columns(); })
      .def(
          "directions",
          [](const Form& form, const Values& values) {
            const Directions& along = form.directions;
            check_shape("values", values, {form.d, along.count});
            for (std::int64_t i = 0; i < form.d; ++i) {
              for (std::int64_t a = 0; a < along.count; ++a) {
                values.data()[i * along.count + a] = along.panels[static_cast<std::size_t>(panel_place(form.d, i, a))];
              }
            }
          },
          nb::arg("values").noconvert(), "Writes the directions of a contracted form, as the constructor takes them.")
      .def(
          "contracted",
          [](const Form& form, const Rows& points, std::int64_t step, std::int64_t columns) {
            const RowsView rows = view_of(points, "points");
            check_columns("points", rows, form.d);
            require(!is_elementwise(form.metric), "form: only metrics of inner products have contracted forms");
            check_at_least("step", step, 1);
            check_number("columns", columns, 2, form.d);
            Unlocked unlocked;
            Directions directions = principal_directions(form, rows, step, columns - 1, supported_isas().back());
            if (directions.stretch() > 1) throw std::logic_error("directions make rows longer than they are");
            std::vector<double> centre(form.centre.begin(), form.centre.begin() + form.d);
            return Form(form.metric, form.scale, std::move(centre), std::move(directions));
          },
          nb::arg("points").noconvert(), nb::arg("step"), nb::arg("columns"),
          "The form contracted to so many columns, by the principal directions of every step-th row.")
      .def(
          "narrowed",
          [](const Form& form, std::int64_t columns) {
            check_number("columns", columns, 2, form.contracts() ? form.columns() : 0);
            std::vector<double> centre(form.centre.begin(), form.centre.begin() + form.d);
            return Form(form.metric, form.scale, std::move(centre), form.directions.first(columns - 1));
          },
          nb::arg("columns"), "A contracted form of fewer columns: of the first of its directions.")
      .def(
          "screened_rows",
          [](const Form& form, const Rows& points, std::int64_t step, const Values& rows) {
            const RowsView view = view_of(points, "points");
            check_columns("points", view, form.d);
            check_at_least("step", step, 1);
            check_shape("rows", rows, {(view.n + step - 1) / step, form.columns()});
            Unlocked unlocked;
            screened_rows(form, view, step, rows.data(), supported_isas().back());
          },
          nb::arg("points").noconvert(), nb::arg("step"), nb::arg("rows").noconvert(),
          "Writes every step-th row as the screen sees it, before rounding; NaN where it is beyond the screen's "
          "range.");

  module.def(
      "products",
      [](const Matrix& rows, const Matrix& others, const Values& found) {
        const auto count = static_cast<std::int64_t>(rows.shape(0)), d = static_cast<std::int64_t>(rows.shape(1));
        const auto of = static_cast<std::int64_t>(others.shape(0));
        check_shape("rows", rows, {count, d});
        check_shape("others", others, {of, d});
        check_shape("found", found, {count, of});
        Unlocked unlocked;
        products(rows.data(), count, others.data(), of, d, found.data(), supported_isas().back());
      },
      nb::arg("rows").noconvert(), nb::arg("others").noconvert(), nb::arg("found").noconvert(),
      "Writes the products of rows with others, on this thread alone: a BLAS would leave threads of its own spinning.");

  Class<BoundPoints>(module, "PackedPoints", "A packed run of points; see exact/pack.hpp.")
      .def(
          "__init__",
          [](BoundPoints* self, const std::string& kernel, const Form& form, const SpacedRows& points,
             std::int64_t begin, std::int64_t end, bool errors, const std::optional<RowOrder>& order,
             const Form* look) {
            const Kernel& chosen = kernel_named(kernel);
            RowsView rows = view_of(points, "points");
            check_form(form, chosen, "points", rows);
            check_look(look, form);
            if (order) {
              rows.order = order->data(), rows.ordered = static_cast<std::int64_t>(order->shape(0));
              check_shape("order", *order, {rows.ordered});
            }
            check_range("points", begin, end, 0, rows.places());
            if (order) check_numbers("order", rows.order + begin, end - begin, 0, rows.n);
            const Errors kept = errors ? Errors::measured : Errors::ignored;
            Unlocked unlocked;
            new (self) BoundPoints{PackedPoints(chosen, form, look, rows, begin, end, kept), &form, look, kept};
          },
          nb::arg("kernel"), nb::arg("form"), nb::arg("points").noconvert(), nb::arg("begin"), nb::arg("end"),
          nb::arg("errors") = true, nb::arg("order").noconvert().none() = nb::none(),
          nb::arg("look").none() = nb::none(), nb::keep_alive<1, 3>(),
          nb::keep_alive<1, 9>())  // keeps the forms alive, so that no other form gets their address
      .def_prop_ro("group", [](const BoundPoints& points) { return points.packed.kernel().layout.point_group; })
      .def_prop_ro("groups", [](const BoundPoints& points) { return points.packed.groups(); })
      .def_prop_ro("count", [](const BoundPoints& points) { return points.packed.count(); })
      .def_prop_ro("looks", [](const BoundPoints& points) { return points.look != nullptr; })
      .def_prop_ro("nbytes", [](const BoundPoints& points) { return points.packed.bytes(); })
      .def(
          "write",
          [](const BoundPoints& points, const Bytes<std::uint8_t>& bytes) {
            require(points.look == nullptr, "points are packed with a look, which is not written");
            check_shape("bytes", bytes, {points.packed.bytes()});
            Unlocked unlocked;
            points.packed.write(reinterpret_cast<std::byte*>(bytes.data()));
          },
          nb::arg("bytes").noconvert(), "Writes all that is packed, for restored_points; nbytes bytes.");
  module.def(
      "restored_points",
      [](const std::string& kernel, const Form& form, std::int64_t begin, std::int64_t end,
         const Bytes<const std::uint8_t>& bytes) {
        const Kernel& chosen = kernel_named(kernel);
        check_range("points", begin, end, 0, kMostSurvivors);
        require(is_kernel_of(chosen, is_elementwise(form.metric) ? metric_name(form.metric) : "inner"),
                "form: the kernel does not compare by its metric");
        check_shape("bytes", bytes, {PackedPoints::bytes_of(chosen, form, end - begin)});
        Unlocked unlocked;
        return BoundPoints{PackedPoints(chosen, form, begin, end, reinterpret_cast<const std::byte*>(bytes.data())),
                           &form, nullptr, Errors::measured};
      },
      nb::arg("kernel"), nb::arg("form"), nb::arg("begin"), nb::arg("end"), nb::arg("bytes").noconvert(),
      nb::keep_alive<0, 2>(), "The packed points that PackedPoints.write wrote, of the same kernel and form.");

  Class<BoundJoin> join(module, "SelfJoin", "The points as their own queries; see exact/self_join.hpp.");
  join.def(
          "__init__",
          [](BoundJoin* self, const std::string& kernel, const Form& form, const Rows& points, std::int64_t k,
             const std::string& isa, const Self& self_ids, bool double_output, bool may_retry, std::int64_t capacity,
             std::int64_t growth, const Form* look, std::optional<RowOrder> order, std::optional<SketchArray> sketch) {
            const SearchSpec spec{.k = k,
                                  .self_ids = self_ids.data(),
                                  .double_output = double_output,
                                  .may_retry = may_retry,
                                  .capacity = capacity,
                                  .growth = growth};
            new (self) BoundJoin(kernel_named(kernel), form, look, points, self_ids, std::move(order),
                                 std::move(sketch), spec, isa_named(isa));
          },
          nb::arg("kernel"), nb::arg("form"), nb::arg("points").noconvert(), nb::arg("k"), nb::arg("isa"),
          nb::arg("self_ids").noconvert(), nb::arg("double_output"), nb::arg("may_retry"), nb::arg("capacity"),
          nb::arg("growth"), nb::arg("look").none() = nb::none(), nb::arg("order").noconvert().none() = nb::none(),
          nb::arg("sketch").noconvert().none() = nb::none(), nb::keep_alive<1, 3>(),
          nb::keep_alive<1, 12>())  // the forms
      .def_unlocked("open", &BoundJoin::open, nb::arg("begin"), nb::arg("end"))
      .def_unlocked("prepare", &BoundJoin::prepare, nb::arg("begin"), nb::arg("end"), nb::arg("packed"))
      .def_unlocked("know", &BoundJoin::know, nb::arg("begin"), nb::arg("end"), nb::arg("values").noconvert());

  Class<BoundWorker>(module, "JoinWorker", "One thread's hand in a join; see exact/self_join.hpp.")
      .def(nb::init<BoundJoin&>(), nb::arg("join"), nb::keep_alive<1, 2>())
      .def_unlocked("open", &BoundWorker::open, nb::arg("begin"), nb::arg("end"))
      .def_unlocked("screen", &BoundWorker::screen, nb::arg("points"), nb::arg("group_begin"), nb::arg("group_end"),
                    nb::arg("both"), nb::arg("looks") = false)
      .def_prop_ro("looked", [](const BoundWorker& self) { return counts(self.worker.look().looked()); });

  Class<BoundBlock> block(module, "RowBlock",
                          "A block of queries on its way through the engine; see exact/row_block.hpp.");
  block
      .def(
          "__init__",
          [](BoundBlock* self, const std::string& kernel, const Form& form, const Rows& queries,
             const SpacedRows& points, std::int64_t k, const std::string& isa, std::optional<Self> self_ids,
             bool double_output, bool may_retry, std::int64_t capacity, std::int64_t sample_rank, const Form* look,
             std::optional<RowOrder> order, std::optional<SketchArray> sketch, bool checks_order) {
            const SearchSpec spec{.k = k,
                                  .self_ids = self_ids ? self_ids->data() : nullptr,
                                  .double_output = double_output,
                                  .may_retry = may_retry,
                                  .capacity = capacity,
                                  .sample_rank = sample_rank};
            new (self) BoundBlock(kernel_named(kernel), form, look, queries, points, std::move(self_ids),
                                  std::move(order), std::move(sketch), spec, isa_named(isa), checks_order);
          },
          nb::arg("kernel"), nb::arg("form"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(),
          nb::arg("k"), nb::arg("isa"), nb::arg("self_ids").noconvert().none(), nb::arg("double_output"),
          nb::arg("may_retry"), nb::arg("capacity"), nb::arg("sample_rank"), nb::arg("look").none() = nb::none(),
          nb::arg("order").noconvert().none() = nb::none(), nb::arg("sketch").noconvert().none() = nb::none(),
          nb::arg("checks_order") = true,  // false: the order was checked before; all searches share it
          nb::keep_alive<1, 3>(), nb::keep_alive<1, 13>())  // the forms
      .def_unlocked("open", &BoundBlock::open, nb::arg("begin"), nb::arg("end"),
                    nb::arg("places").noconvert().none() = nb::none(), nb::arg("asked").noconvert().none() = nb::none())
      .def_unlocked("screen", &BoundBlock::screen, nb::arg("points"), nb::arg("group_begin"), nb::arg("group_end"),
                    nb::arg("stride") = 0, nb::arg("take_stride") = false, nb::arg("looks") = false)
      .def_prop_ro("looked", [](const BoundBlock& self) { return counts(self.block.look().looked()); })
      .def_unlocked("screen_marked", &BoundBlock::screen_marked, nb::arg("points"), nb::arg("group_begin"),
                    nb::arg("group_end"), nb::arg("marks").noconvert())
      .def("reach", &BoundBlock::reach, nb::arg("row"))
      .def_unlocked("lower_thresholds", &BoundBlock::lower_thresholds)
      .def_unlocked("take_thresholds", &BoundBlock::take_thresholds, nb::arg("other"))
      .def_unlocked("end_sample", &BoundBlock::end_sample)
      .def_unlocked("absorb", &BoundBlock::absorb, nb::arg("other"));

  bind_finish<float, std::int32_t>(block, join);
  bind_finish<float, std::int64_t>(block, join);
  bind_finish<double, std::int32_t>(block, join);
  bind_finish<double, std::int64_t>(block, join);
}

}  // namespace tonari
