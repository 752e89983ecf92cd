#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bind/binds.hpp"
#include "exact/row_block.hpp"
#include "exact/self_join.hpp"

namespace nb = nanobind;

namespace tonari {

Metric metric_named(const std::string& name) {
  constexpr std::pair<const char*, Metric> names[] = {
      {"sqeuclidean", Metric::sqeuclidean}, {"euclidean", Metric::euclidean}, {"cosine", Metric::cosine},
      {"correlation", Metric::correlation}, {"inner_product", Metric::inner_product},
      {"l1", Metric::l1},                   {"linf", Metric::linf},           {"chi2", Metric::chi2}};
  for (const auto& [known, metric] : names) {
    if (name == known) return metric;
  }
  throw nb::value_error(("unknown metric " + name).c_str());
}

Isa isa_named(const std::string& name) {
  for (Isa isa : supported_isas()) {
    if (name == isa_name(isa)) return isa;
  }
  throw nb::value_error(("this machine cannot run " + name).c_str());
}

const Kernel& kernel_named(const std::string& name) {
  for (const Kernel* kernel : available_kernels()) {
    if (name == kernel->name) return *kernel;
  }
  throw nb::value_error(("no kernel " + name + " on this machine").c_str());
}

namespace {

using Self = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Status = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Value, class Index>
std::int64_t finish(RowBlock& block, Output<Value> distances, Output<Index> indices, Status status) {
  Unlocked unlocked;
  return block.finish(distances.data(), indices.data(), status.data());
}

template <class Value, class Index>
std::int64_t finish_join(SelfJoin& join, std::int64_t begin, std::int64_t end, Output<Value> distances,
                         Output<Index> indices, Status status) {
  Unlocked unlocked;
  return join.finish(begin, end, distances.data(), indices.data(), status.data());
}

}  // namespace

void bind_engine(Module& module) {
  module.def(
      "exact_values",
      [](const std::string& metric, const Rows& queries, const Rows& points, const Ids& indices, const Values& values) {
        const Metric chosen = metric_named(metric);
        const RowsView query_rows = view_of(queries), point_rows = view_of(points);
        const auto width = static_cast<std::int64_t>(indices.shape(1));
        const ExactValues compute = exact_values(supported_isas().back());
        Unlocked unlocked;
        for (std::int64_t i = 0; i < query_rows.n; ++i) {
          const ExactQuery query = exact_query(chosen, query_rows, i);
          compute(chosen, query, point_rows, indices.data() + i * width, width, values.data() + i * width);
        }
      },
      nb::arg("metric"), nb::arg("queries"), nb::arg("points"), nb::arg("indices"), nb::arg("values").noconvert(),
      "Exact values of (queries[i], points[indices[i, j]]), in float64, before rounding to the output type.");

  Class<Form>(module, "Form", "The form in which rows are compared; see exact/form.hpp.")
      .def(
          "__init__",
          [](Form* self, const std::string& metric, std::vector<double> centre, double scale) {
            const auto d = static_cast<std::int64_t>(centre.size());
            new (self) Form{metric_named(metric), d, scale, std::move(centre)};
          },
          nb::arg("metric"), nb::arg("centre"), nb::arg("scale"));

  Class<PackedPoints>(module, "PackedPoints", "A packed run of points; see exact/pack.hpp.")
      .def(
          "__init__",
          [](PackedPoints* self, const std::string& kernel, const Form& form, const Rows& points, std::int64_t begin,
             std::int64_t end, bool errors) {
            const Kernel& chosen = kernel_named(kernel);
            const RowsView rows = view_of(points);
            Unlocked unlocked;
            new (self) PackedPoints(chosen, form, rows, begin, end, errors ? Errors::measured : Errors::ignored);
          },
          nb::arg("kernel"), nb::arg("form"), nb::arg("points"), nb::arg("begin"), nb::arg("end"),
          nb::arg("errors") = true)
      .def_prop_ro("group", [](const PackedPoints& points) { return points.kernel().layout.point_group; })
      .def_prop_ro("groups", &PackedPoints::groups)
      .def_prop_ro("count", &PackedPoints::count)
      .def_prop_ro("nbytes", &PackedPoints::bytes);

  Class<SelfJoin>(module, "SelfJoin", "The points as their own queries; see exact/self_join.hpp.")
      .def(
          "__init__",
          [](SelfJoin* self, const std::string& kernel, const Form& form, const Rows& points, std::int64_t k,
             const std::string& isa, const Self& self_ids, bool double_output, bool may_climb, std::int64_t capacity,
             std::int64_t growth) {
            const SearchSpec spec{.k = k,
                                  .self_ids = self_ids.data(),
                                  .double_output = double_output,
                                  .may_climb = may_climb,
                                  .capacity = capacity,
                                  .growth = growth};
            new (self) SelfJoin(kernel_named(kernel), form, view_of(points), spec, isa_named(isa));
          },
          nb::arg("kernel"), nb::arg("form"), nb::arg("points"), nb::arg("k"), nb::arg("isa"), nb::arg("self_ids"),
          nb::arg("double_output"), nb::arg("may_climb"), nb::arg("capacity"), nb::arg("growth"),
          // The join reads these as long as it lives.
          nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 7>())
      .def_unlocked("open", &SelfJoin::open, nb::arg("begin"), nb::arg("end"))
      .def_unlocked("prepare", &SelfJoin::prepare, nb::arg("begin"), nb::arg("end"), nb::arg("packed"))
      .def("finish", finish_join<float, std::int32_t>, nb::arg("begin"), nb::arg("end"),
           nb::arg("distances").noconvert(), nb::arg("indices").noconvert(), nb::arg("status").noconvert())
      .def("finish", finish_join<float, std::int64_t>, nb::arg("begin"), nb::arg("end"),
           nb::arg("distances").noconvert(), nb::arg("indices").noconvert(), nb::arg("status").noconvert())
      .def("finish", finish_join<double, std::int32_t>, nb::arg("begin"), nb::arg("end"),
           nb::arg("distances").noconvert(), nb::arg("indices").noconvert(), nb::arg("status").noconvert())
      .def("finish", finish_join<double, std::int64_t>, nb::arg("begin"), nb::arg("end"),
           nb::arg("distances").noconvert(), nb::arg("indices").noconvert(), nb::arg("status").noconvert());

  Class<JoinWorker>(module, "JoinWorker", "One thread's hand in a join; see exact/self_join.hpp.")
      .def(nb::init<SelfJoin&>(), nb::arg("join"), nb::keep_alive<1, 2>())
      .def_unlocked("open", &JoinWorker::open, nb::arg("begin"), nb::arg("end"))
      .def_unlocked("screen", &JoinWorker::screen, nb::arg("points"), nb::arg("group_begin"), nb::arg("group_end"),
                    nb::arg("both"));

  Class<RowBlock>(module, "RowBlock", "A block of queries on its way through the engine; see exact/row_block.hpp.")
      .def(
          "__init__",
          [](RowBlock* self, const std::string& kernel, const Form& form, const Rows& queries, const Rows& points,
             std::int64_t k, const std::string& isa, std::optional<Self> self_ids, bool double_output, bool may_climb,
             std::int64_t capacity, std::int64_t sample_rank) {
            const SearchSpec spec{.k = k,
                                  .self_ids = self_ids ? self_ids->data() : nullptr,
                                  .double_output = double_output,
                                  .may_climb = may_climb,
                                  .capacity = capacity,
                                  .sample_rank = sample_rank};
            new (self) RowBlock(kernel_named(kernel), form, view_of(queries), view_of(points), spec, isa_named(isa));
          },
          nb::arg("kernel"), nb::arg("form"), nb::arg("queries"), nb::arg("points"), nb::arg("k"), nb::arg("isa"),
          nb::arg("self_ids").none(), nb::arg("double_output"), nb::arg("may_climb"), nb::arg("capacity"),
          nb::arg("sample_rank"),
          // The block reads these as long as it lives.
          nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 8>())
      .def_unlocked("open", &RowBlock::open, nb::arg("begin"), nb::arg("end"))
      .def_unlocked("screen", &RowBlock::screen, nb::arg("points"), nb::arg("group_begin"), nb::arg("group_end"),
                    nb::arg("stride") = 0, nb::arg("take_stride") = false)
      .def_unlocked("end_sample", &RowBlock::end_sample)
      .def_unlocked("absorb", &RowBlock::absorb, nb::arg("other"))
      .def("finish", finish<float, std::int32_t>, nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
           nb::arg("status").noconvert())
      .def("finish", finish<float, std::int64_t>, nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
           nb::arg("status").noconvert())
      .def("finish", finish<double, std::int32_t>, nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
           nb::arg("status").noconvert())
      .def("finish", finish<double, std::int64_t>, nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
           nb::arg("status").noconvert());
}

}  // namespace tonari
