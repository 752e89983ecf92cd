#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "bind/binds.hpp"
#include "missing/block.hpp"
#include "missing/points.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Ids = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Limits = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::int64_t kMostColumns = std::numeric_limits<std::int32_t>::max();

// Packed points, together with the array of their rows.
struct BoundMissingPoints {
  SpacedRows array;
  MissingPoints points;

  explicit BoundMissingPoints(const SpacedRows& of_points) : array(of_points), points(checked(array)) {}

  static RowsView checked(const SpacedRows& rows) {
    const RowsView view = view_of(rows, "points");
    require(view.n > 0, "no points");
    check_number("columns", view.d, 1, kMostColumns);
    return view;
  }
};

// A block of queries, together with the arrays that it reads. It copies the queries and the limits.
struct BoundMissing {
  std::optional<Ids> own;
  std::int64_t n;
  bool narrow, counted;
  MissingBlock block;
  std::int64_t scanned = 0;  // all groups of points before this one have been scanned

  BoundMissing(Isa isa, const MissingPoints& points, const RowsView& queries, std::optional<Ids> of_own,
               const MissingRequest& request)
      : own(std::move(of_own)),
        n(points.rows.n),
        narrow(request.narrow),
        counted(request.counted),
        block(isa, points, queries, request) {}

  void scan(std::int64_t begin, std::int64_t end) {
    check_range("groups", begin, end, scanned, missing_groups(n));
    require(begin == scanned, "groups are scanned one after another");
    block.scan(begin, end);
    scanned = end;
  }

  void check_scanned() const { require(scanned == missing_groups(n), "not all groups are scanned"); }

  void count(const Output<std::int64_t>& found) {
    check_scanned();
    check_shape("counts", found, {block.count()});
    for (std::int64_t i = 0; i < block.count(); ++i) found.data()[i] = block.found(i);
  }

  template <class Value, class Index>
  void write(const Output<Value>& distances, const Output<Index>& indices) {
    check_scanned();
    require(!counted, "points are counted, not stored");
    if (narrow != (sizeof(Value) == 4)) refuse_type("distances: expected float32 if narrow, else float64");
    check_id_type<Index>("indices", n);
    std::int64_t all = 0;
    for (std::int64_t i = 0; i < block.count(); ++i) all += block.found(i);
    check_shape("distances", distances, {all});
    check_shape("indices", indices, {all});
    Unlocked unlocked;
    block.write(distances.data(), indices.data());
  }
};

bool is_narrow(const RowsView& queries, const RowsView& points) {
  return queries.dtype != Dtype::f64 && points.dtype != Dtype::f64;
}

template <class Value, class Index>
void def_write(Class<BoundMissing>& block) {
  block.def("write", &BoundMissing::write<Value, Index>, nb::arg("distances").noconvert(),
            nb::arg("indices").noconvert());
}

}  // namespace

void bind_missing(Module& module) {
  Class<BoundMissingPoints> points(module, "MissingPoints",
                                   "Packed points with missing values; see missing/points.hpp.");
  points
      .def(
          "__init__",
          [](BoundMissingPoints* self, const SpacedRows& of_points) {
            BoundMissingPoints::checked(of_points);
            Unlocked unlocked;
            new (self) BoundMissingPoints(of_points);
          },
          nb::arg("points").noconvert())
      .def("bytes", [](const BoundMissingPoints& self) { return self.points.bytes(); });
  Class<BoundMissing> block(module, "MissingBlock", "A block of queries with missing values; see missing/block.hpp.");
  block
      .def(
          "__init__",
          [](BoundMissing* self, const std::string& isa, const BoundMissingPoints& of, const SpacedRows& of_queries,
             std::int64_t k, const std::optional<Limits>& limits, const std::optional<Ids>& own, bool later,
             bool counted) {
            const RowsView queries = view_of(of_queries, "queries");
            check_columns("queries", queries, of.points.rows.d);
            check_number("k", k, limits ? 0 : 1, limits ? 0 : of.points.rows.n);
            require(!counted || limits, "counted is for limits");
            require(!later || own, "later needs own");
            if (own) check_shape("own", *own, {queries.n});
            if (limits) {
              check_shape("limits", *limits, {queries.n});
              for (std::int64_t i = 0; i < queries.n; ++i) {
                require(!std::isnan(limits->data()[i]), "limits: one is not a number");
              }
            }
            const MissingRequest request{.k = k,
                                         .limits = limits ? limits->data() : nullptr,
                                         .own = own ? own->data() : nullptr,
                                         .later = later,
                                         .counted = counted,
                                         .narrow = is_narrow(queries, of.points.rows)};
            new (self) BoundMissing(isa_named(isa), of.points, queries, own, request);
          },
          nb::arg("isa"), nb::arg("points"), nb::arg("queries").noconvert(), nb::arg("k"),
          nb::arg("limits").noconvert().none(), nb::arg("own").noconvert().none(), nb::arg("later"), nb::arg("counted"),
          nb::keep_alive<1, 3>())
      .def_unlocked("scan", &BoundMissing::scan, nb::arg("begin"), nb::arg("end"))
      .def("refined", [](const BoundMissing& self) { return self.block.refined(); })
      .def("count", &BoundMissing::count, nb::arg("counts").noconvert());
  def_write<float, std::int32_t>(block);
  def_write<float, std::int64_t>(block);
  def_write<double, std::int32_t>(block);
  def_write<double, std::int64_t>(block);
  module.def(
      "missing_values",
      [](const std::string& isa, const SpacedRows& of_queries, const SpacedRows& of_points, const Ids& rows,
         const Ids& ids, const Output<double>& values) {
        const RowsView queries = view_of(of_queries, "queries"), all = view_of(of_points, "points");
        check_columns("points", all, queries.d);
        const auto count = static_cast<std::int64_t>(rows.size());
        check_shape("rows", rows, {count});
        check_shape("ids", ids, {count});
        check_shape("values", values, {count});
        check_numbers("rows", rows.data(), count, 0, queries.n);
        check_numbers("ids", ids.data(), count, 0, all.n);
        const Isa level = isa_named(isa);
        Unlocked unlocked;
        missing_values(level, queries, all, rows.data(), ids.data(), count, values.data());
      },
      nb::arg("isa"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(), nb::arg("rows").noconvert(),
      nb::arg("ids").noconvert(), nb::arg("values").noconvert(),
      "The float64 values of pairs of rows with missing values; see missing/block.hpp.");
}

}  // namespace tonari
