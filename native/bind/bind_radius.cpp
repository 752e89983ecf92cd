#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <optional>
#include <utility>

#include "bind/bound_allowed.hpp"
#include "bind/open_rows.hpp"
#include "exact/radius_block.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Limits = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_limits(const Limits& limits, std::int64_t m) {
  check_shape("limits", limits, {m});
  for (std::int64_t i = 0; i < m; ++i) require(!std::isnan(limits.data()[i]), "limits: one is not a number");
}

void check_own(const std::optional<Numbers>& self_ids, std::int64_t m, bool later, bool named) {
  require(self_ids || !later, "later: expected self_ids, which the points come after");
  if (!self_ids) return;
  check_shape("self_ids", *self_ids, {m});
  if (!later || named) return;
  for (std::int64_t i = 1; i < m; ++i) {
    require(self_ids->data()[i - 1] <= self_ids->data()[i], "later: expected self_ids in ascending order");
  }
}

// A block of queries, together with the arrays that it reads.
struct BoundRadius {
  Rows query_array;
  SpacedRows point_array;
  Limits limits;
  std::optional<Numbers> self_ids;
  std::optional<RowOrder> order;
  RowsView queries, points;
  const Kernel& kernel;
  const Form& form;
  const Form* look;
  RadiusSpec spec;
  RadiusBlock block;
  OpenRows rows;

  BoundRadius(const Kernel& chosen, const Form& in_form, const Form* of_look, const Rows& of_queries,
              const SpacedRows& of_points, Limits farthest, std::optional<Numbers> own, std::optional<RowOrder> places,
              const RadiusSpec& asked, Isa isa)
      : query_array(of_queries),
        point_array(of_points),
        limits(std::move(farthest)),
        self_ids(std::move(own)),
        order(std::move(places)),
        queries(view_of(query_array, "queries")),
        points(ordered(view_of(point_array, "points"), order)),
        kernel(chosen),
        form(in_form),
        look(of_look),
        spec(asked),
        block(kernel, form, look, queries, points, spec, isa) {
    check_form(form, kernel, "queries", queries);
    check_look(look, form);
    check_columns("points", points, form.d);
    check_limits(limits, queries.n);
    check_own(self_ids, queries.n, spec.later, order.has_value());
    check_at_least("room", spec.room, 0);
  }

  void open(std::int64_t begin, std::int64_t end) {
    rows.reopen("queries", begin, end, 0, queries.n,
                [this](std::int64_t first, std::int64_t last) { block.open(first, last); });
  }

  bool screen(const BoundPoints& run, std::int64_t group_begin, std::int64_t group_end, bool looks) {
    rows.check();
    check_packed(run, kernel, form, Errors::measured);
    check_number("end of the packed points", run.packed.base() + run.packed.count(), 0, points.places());
    check_range("groups", group_begin, group_end, 0, run.packed.groups());
    if (looks) check_looked(run, look);
    block.screen(run.packed, looks, group_begin, group_end);
    return !block.full();
  }

  void absorb(BoundRadius& other) {
    rows.check();
    require(&other != this, "a block cannot absorb itself");
    require(other.rows.begin == rows.begin && other.rows.end == rows.end && other.queries.data == queries.data &&
                other.points.data == points.data && other.limits.data() == limits.data() && &other.form == &form &&
                other.points.order == points.order && other.spec.lists == spec.lists &&
                other.spec.allowed == spec.allowed && other.spec.later == spec.later &&
                other.spec.double_output == spec.double_output,
            "blocks differ in their queries, points, order, form or limits: expected the same search");
    block.absorb(other.block);
  }

  std::int64_t count(const Counts& counts) {
    rows.check();
    check_shape("counts", counts, {rows.count()});
    Unlocked unlocked;
    return block.count(counts.data());
  }

  template <class Value, class Index>
  void write(const Output<Value>& distances, const Output<Index>& indices) {
    rows.check();
    require(spec.lists, "the block only counts; expected lists=True");
    check_type("distances", distances.dtype(), spec.double_output ? nb::dtype<double>() : nb::dtype<float>());
    check_id_type<Index>("indices", points.n);
    check_shape("distances", distances, {block.found()});
    check_shape("indices", indices, {block.found()});
    Unlocked unlocked;
    block.write(distances.data(), indices.data());
  }
};

template <class Value, class Index>
void bind_write(Class<BoundRadius>& block) {
  block.def("write", &BoundRadius::write<Value, Index>, nb::arg("distances").noconvert(),
            nb::arg("indices").noconvert());
}

}  // namespace

void bind_radius(Module& module) {
  Class<BoundRadius> block(module, "RadiusBlock", "A block of queries with radii; see exact/radius_block.hpp.");
  block
      .def(
          "__init__",
          [](BoundRadius* self, const std::string& kernel, const Form& form, const Rows& queries,
             const SpacedRows& points, const std::string& isa, const Limits& limits, std::optional<Numbers> self_ids,
             bool later, bool lists, bool double_output, std::int64_t room, const Form* look,
             std::optional<RowOrder> order, const BoundAllowed* allowed) {
            check_allowed(allowed, view_of(queries, "queries").n, view_of(points, "points").n, self_ids);
            const RadiusSpec spec{.limits = limits.data(),
                                  .self_ids = self_ids ? self_ids->data() : nullptr,
                                  .allowed = allowed != nullptr ? &allowed->pairs : nullptr,
                                  .later = later,
                                  .lists = lists,
                                  .double_output = double_output,
                                  .room = room};
            new (self) BoundRadius(kernel_named(kernel), form, look, queries, points, limits, std::move(self_ids),
                                   std::move(order), spec, isa_named(isa));
          },
          nb::arg("kernel"), nb::arg("form"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(),
          nb::arg("isa"), nb::arg("limits").noconvert(), nb::arg("self_ids").noconvert().none(), nb::arg("later"),
          nb::arg("lists"), nb::arg("double_output"), nb::arg("room"), nb::arg("look").none() = nb::none(),
          nb::arg("order").noconvert().none() = nb::none(), nb::arg("allowed").none() = nb::none(),
          nb::keep_alive<1, 3>(), nb::keep_alive<1, 13>(), nb::keep_alive<1, 15>())  // the forms and the rules
      .def_unlocked("open", &BoundRadius::open, nb::arg("begin"), nb::arg("end"))
      .def_unlocked("screen", &BoundRadius::screen, nb::arg("points"), nb::arg("group_begin"), nb::arg("group_end"),
                    nb::arg("looks") = false)
      .def_unlocked("absorb", &BoundRadius::absorb, nb::arg("other"))
      .def("count", &BoundRadius::count, nb::arg("counts").noconvert(),
           "Points found by each row, once all are screened; returns how many exact values were computed in vain.")
      .def_prop_ro("looked", [](const BoundRadius& self) { return counts(self.block.look().looked()); })
      .def_prop_ro("full", [](const BoundRadius& self) { return self.block.full(); })
      .def_prop_ro("found", [](const BoundRadius& self) { return self.block.found(); });
  bind_write<float, std::int32_t>(block);
  bind_write<float, std::int64_t>(block);
  bind_write<double, std::int32_t>(block);
  bind_write<double, std::int64_t>(block);
}

}  // namespace tonari
