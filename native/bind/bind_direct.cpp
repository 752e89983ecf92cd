#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <utility>
#include <vector>

#include "bind/bound_allowed.hpp"
#include "exact/direct.hpp"

namespace nb = nanobind;

namespace tonari {

namespace {

using Self = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Limits = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AnyLimits = nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu>;  // one limit per query, at any stride
using Counts = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Checks that the lists of m queries are within the array of listed points, and name points among n.
void check_lists(const Self& listed, const Self& begins, const Self& ends, std::int64_t m, std::int64_t n) {
  check_shape("begins", begins, {m});
  check_shape("ends", ends, {m});
  check_aligned("listed", listed);
  const auto count = static_cast<std::int64_t>(listed.size());
  std::int64_t low = count, high = 0;  // the range of `listed` that the queries' lists cover
  for (std::int64_t i = 0; i < m; ++i) {
    check_range("listed", begins.data()[i], ends.data()[i], 0, count);
    low = std::min(low, begins.data()[i]);
    high = std::max(high, ends.data()[i]);
  }
  if (low < high) check_numbers("listed", listed.data() + low, high - low, 0, n);
}

DirectSearch::Unchecked unchecked_of(int arrays) {
  check_number("unchecked", arrays, 0, 2);
  return static_cast<DirectSearch::Unchecked>(arrays);
}

bool are_refused(const RowsView& queries, const RowsView& points, DirectSearch::Unchecked unchecked) {
  if (unchecked == DirectSearch::Unchecked::none) return false;
  return is_refused(queries) || (unchecked == DirectSearch::Unchecked::all && is_refused(points));
}

template <class T>
using Flat = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A radius search with checked arguments, and the limits of its queries.
struct CheckedRadius {
  DirectRadius search;
  std::vector<double> limits;

  CheckedRadius(const std::string& metric, const std::string& isa, const Rows& queries, const Rows& points,
                const AnyLimits& given, const std::optional<Self>& self_ids, const BoundAllowed* allowed, bool later) {
    const RowsView asked = view_of(queries, "queries"), among = view_of(points, "points");
    check_columns("points", among, asked.d);
    check_shape("limits", given, {asked.n});
    if (self_ids) check_shape("self_ids", *self_ids, {asked.n});
    require(self_ids || !later, "later: expected self_ids, which the points come after");
    check_allowed(allowed, asked.n, among.n, self_ids);
    const bool wide = is_double("limits", given.dtype());
    limits.resize(static_cast<std::size_t>(asked.n));
    const std::int64_t stride = given.stride(0);
    for (std::int64_t i = 0; i < asked.n; ++i) {
      limits[static_cast<std::size_t>(i)] = wide ? static_cast<const double*>(given.data())[i * stride]
                                                 : static_cast<const float*>(given.data())[i * stride];
    }
    search = {metric_named(metric),
              isa_named(isa),
              asked,
              among,
              limits.data(),
              self_ids ? self_ids->data() : nullptr,
              allowed != nullptr ? &allowed->pairs : nullptr,
              later};
  }
};

template <class Value, class Index>
void bind(Module& module) {
  module.def(
      "find_directly",
      [](const std::string& metric, const std::string& isa, const Rows& queries, const Rows& points,
         const AnyLimits& limits, const std::optional<Self>& self_ids, const BoundAllowed* allowed, bool later,
         const Flat<std::int64_t>& indptr, const Flat<Value>& distances, const Flat<Index>& indices,
         int unchecked) -> std::optional<std::pair<std::int64_t, bool>> {
        const CheckedRadius checked(metric, isa, queries, points, limits, self_ids, allowed, later);
        const RowsView &asked = checked.search.queries, &among = checked.search.points;
        const bool is_double = asked.dtype == Dtype::f64 || among.dtype == Dtype::f64;
        check_type("distances", distances.dtype(), is_double ? nb::dtype<double>() : nb::dtype<float>());
        check_id_type<Index>("indices", among.n);
        check_shape("indptr", indptr, {asked.n + 1});
        check_shape("distances", distances, {asked.n * among.n});
        check_shape("indices", indices, {asked.n * among.n});
        const auto which = unchecked_of(unchecked);
        Unlocked unlocked;
        if (are_refused(asked, among, which)) return std::nullopt;
        const std::int64_t found = find_directly(checked.search, indptr.data(), distances.data(), indices.data());
        return std::pair(found, are_plain(distances.data(), found));
      },
      nb::arg("metric"), nb::arg("isa"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(),
      nb::arg("limits").noconvert(), nb::arg("self_ids").noconvert().none(), nb::arg("allowed").none(),
      nb::arg("later"), nb::arg("indptr").noconvert(), nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
      nb::arg("unchecked") = 0,
      "The points within the limit of every query, by exact values. Returns their number, and whether all values are "
      "far from the ends of float32; None for refused values, as search_directly; see exact/direct.hpp.");
  module.def(
      "search_directly",
      [](const std::string& metric, const std::string& isa, const Rows& queries, const Rows& points, std::int64_t k,
         const std::optional<Self>& self_ids, const Output<Value>& distances, const Output<Index>& indices,
         int unchecked) -> std::optional<bool> {
        const RowsView asked = view_of(queries, "queries"), among = view_of(points, "points");
        check_columns("points", among, asked.d);
        check_number("k", k, 1, among.n - (self_ids ? 1 : 0));
        if (self_ids) {
          check_shape("self_ids", *self_ids, {asked.n});
          check_numbers("self_ids", self_ids->data(), asked.n, 0, among.n);
        }
        const bool is_double = asked.dtype == Dtype::f64 || among.dtype == Dtype::f64;
        check_type("distances", distances.dtype(), is_double ? nb::dtype<double>() : nb::dtype<float>());
        check_id_type<Index>("indices", among.n);
        check_shape("distances", distances, {asked.n, k});
        check_shape("indices", indices, {asked.n, k});
        DirectSearch search{
            metric_named(metric), isa_named(isa), asked, among, k, self_ids ? self_ids->data() : nullptr};
        search.unchecked = unchecked_of(unchecked);
        Unlocked unlocked;
        if (!search_directly(search, 0, asked.n, distances.data(), indices.data())) return std::nullopt;
        return are_plain(distances.data(), asked.n * k);
      },
      nb::arg("metric"), nb::arg("isa"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(), nb::arg("k"),
      nb::arg("self_ids").noconvert().none(), nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
      nb::arg("unchecked") = 0,
      "The k nearest points of every query, by exact values. Returns whether all values are far from the ends of "
      "float32; None if a value of the `unchecked` arrays, 1 (queries) or 2 (points too), may be refused; see "
      "exact/direct.hpp.");
  module.def(
      "search_listed",
      [](const std::string& metric, const std::string& isa, const Rows& queries, const Rows& points, std::int64_t k,
         const std::optional<Self>& self_ids, const Self& listed, const Self& begins, const Self& ends,
         const Output<Value>& distances, const Output<Index>& indices) {
        const RowsView asked = view_of(queries, "queries"), among = view_of(points, "points");
        check_columns("points", among, asked.d);
        check_at_least("k", k, 1);
        if (self_ids) check_shape("self_ids", *self_ids, {asked.n});
        check_lists(listed, begins, ends, asked.n, among.n);
        const bool is_double = asked.dtype == Dtype::f64 || among.dtype == Dtype::f64;
        check_type("distances", distances.dtype(), is_double ? nb::dtype<double>() : nb::dtype<float>());
        check_id_type<Index>("indices", among.n);
        check_shape("distances", distances, {asked.n, k});
        check_shape("indices", indices, {asked.n, k});
        const DirectSearch search{
            metric_named(metric), isa_named(isa), asked,      among, k, self_ids ? self_ids->data() : nullptr,
            listed.data(),        begins.data(),  ends.data()};
        Unlocked unlocked;
        search_directly(search, 0, asked.n, distances.data(), indices.data());
      },
      nb::arg("metric"), nb::arg("isa"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(), nb::arg("k"),
      nb::arg("self_ids").noconvert().none(), nb::arg("listed").noconvert(), nb::arg("begins").noconvert(),
      nb::arg("ends").noconvert(), nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
      "The k nearest of the points that are listed for every query, by exact values; see exact/direct.hpp.");
}

}  // namespace

void bind_direct(Module& module) {
  bind<float, std::int32_t>(module);
  bind<float, std::int64_t>(module);
  bind<double, std::int32_t>(module);
  bind<double, std::int64_t>(module);
  module.def(
      "count_directly",
      [](const std::string& metric, const std::string& isa, const Rows& queries, const Rows& points,
         const AnyLimits& limits, const std::optional<Self>& self_ids, const BoundAllowed* allowed,
         const Counts& counts, int unchecked) {
        const CheckedRadius checked(metric, isa, queries, points, limits, self_ids, allowed, false);
        check_shape("counts", counts, {checked.search.queries.n});
        const auto which = unchecked_of(unchecked);
        Unlocked unlocked;
        if (are_refused(checked.search.queries, checked.search.points, which)) return false;
        count_directly(checked.search, counts.data());
        return true;
      },
      nb::arg("metric"), nb::arg("isa"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(),
      nb::arg("limits").noconvert(), nb::arg("self_ids").noconvert().none(), nb::arg("allowed").none(),
      nb::arg("counts").noconvert(), nb::arg("unchecked") = 0,
      "Counts the points within the limit of every query, by exact values. Returns False for refused values, as "
      "search_directly; see exact/direct.hpp.");
  module.def(
      "count_listed",
      [](const std::string& metric, const std::string& isa, const Rows& queries, const Rows& points,
         const Limits& limits, const Self& listed, const Self& begins, const Self& ends, const Counts& counts) {
        const RowsView asked = view_of(queries, "queries"), among = view_of(points, "points");
        check_columns("points", among, asked.d);
        check_shape("limits", limits, {asked.n});
        check_lists(listed, begins, ends, asked.n, among.n);
        check_shape("counts", counts, {asked.n});
        const DirectSearch search{metric_named(metric), isa_named(isa), asked,      among, 1, nullptr,
                                  listed.data(),        begins.data(),  ends.data()};
        Unlocked unlocked;
        count_listed(search, limits.data(), counts.data());
      },
      nb::arg("metric"), nb::arg("isa"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(),
      nb::arg("limits").noconvert(), nb::arg("listed").noconvert(), nb::arg("begins").noconvert(),
      nb::arg("ends").noconvert(), nb::arg("counts").noconvert(),
      "Counts the listed points within the limit of every query, by exact values; see exact/direct.hpp.");
}

}  // namespace tonari
