#include <nanobind/stl/optional.h>

#include <limits>
#include <optional>
#include <utility>

#include "bind/bound_allowed.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Numbers = BoundAllowed::Numbers;
using Mask = BoundAllowed::Mask;
using Table = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

const std::int64_t* data_of(const std::optional<Numbers>& numbers) { return numbers ? numbers->data() : nullptr; }

void check_places(const char* name, const std::optional<Numbers>& numbers, std::int64_t end) {
  if (!numbers) return;
  check_aligned(name, *numbers);
  check_numbers(name, numbers->data(), static_cast<std::int64_t>(numbers->size()), 0, end);
}

// Checks the lists of excluded points of m queries; `begins` has where they begin, and where the last one ends.
void check_lists(const Numbers& excluded, const Numbers& begins, std::int64_t m, std::int64_t n) {
  check_aligned("excluded", excluded);
  check_aligned("begins", begins);
  check_shape("begins", begins, {m + 1});
  const auto count = static_cast<std::int64_t>(excluded.size());
  const std::int64_t *const ids = excluded.data(), *const ends = begins.data();
  std::int64_t outside = 0;  // negative if a number is; checked together, as most lists are right
  for (std::int64_t i = 0; i < count; ++i) outside |= ids[i] | (n - 1 - ids[i]);
  if (outside < 0) check_numbers("excluded", ids, count, 0, n);
  bool ascending = ends[0] == 0 && ends[m] == count;
  for (std::int64_t i = 0; i < m; ++i) ascending &= ends[i] <= ends[i + 1];
  require(ascending, "begins: expected numbers that ascend from 0 to the number of excluded");
}

void make(BoundAllowed* self, std::int64_t m, std::int64_t n, std::optional<Mask> mask, bool packed,
          std::optional<Numbers> query_groups, std::optional<Numbers> point_groups, bool same,
          std::optional<Numbers> excluded, std::optional<Numbers> begins, std::int64_t window, bool copies,
          std::optional<Numbers> rows, std::optional<Numbers> ids) {
  check_at_least("m", m, 0);
  check_at_least("n", n, 0);
  require(n == 0 || m <= std::numeric_limits<std::int64_t>::max() / n, "m * n: expected less than 2**63");
  const std::int64_t columns = packed ? (n + 7) / 8 : n;
  const bool shared = mask && mask->shape(0) == 1;
  if (mask) check_shape("mask", *mask, {shared ? 1 : m, columns});
  require(query_groups.has_value() == point_groups.has_value(), "query_groups, point_groups: expected both or none");
  if (query_groups) check_shape("query_groups", *query_groups, {m});
  if (point_groups) check_shape("point_groups", *point_groups, {n});
  require(excluded.has_value() == begins.has_value(), "excluded, begins: expected both or none");
  if (excluded) check_lists(*excluded, *begins, m, n);
  check_number("window", window, -1, n);
  check_places("rows", rows, m);
  check_places("ids", ids, n);
  const AllowedPairs pairs{.m = m,
                           .n = n,
                           .mask = mask ? mask->data() : nullptr,
                           .mask_stride = shared ? 0 : columns,
                           .packed = packed,
                           .query_groups = data_of(query_groups),
                           .point_groups = data_of(point_groups),
                           .same = same,
                           .excluded = data_of(excluded),
                           .begins = data_of(begins),
                           .window = window,
                           .copies = copies,
                           .rows = data_of(rows),
                           .ids = data_of(ids)};
  new (self) BoundAllowed{pairs,
                          std::move(mask),
                          std::move(query_groups),
                          std::move(point_groups),
                          std::move(excluded),
                          std::move(begins),
                          std::move(rows),
                          std::move(ids)};
}

}  // namespace

void bind_allowed(Module& module) {
  Class<BoundAllowed>(module, "Allowed", "Which points each query of a search may find; see core/allowed.hpp.")
      .def("__init__", &make, nb::arg("m"), nb::arg("n"), nb::arg("mask").noconvert().none(), nb::arg("packed"),
           nb::arg("query_groups").noconvert().none(), nb::arg("point_groups").noconvert().none(), nb::arg("same"),
           nb::arg("excluded").noconvert().none(), nb::arg("begins").noconvert().none(), nb::arg("window"),
           nb::arg("copies"), nb::arg("rows").noconvert().none(), nb::arg("ids").noconvert().none())
      .def(
          "of_rows",
          [](const BoundAllowed& self, const Numbers& rows) {
            check_aligned("rows", rows);
            check_numbers("rows", rows.data(), static_cast<std::int64_t>(rows.size()), 0, self.pairs.m);
            BoundAllowed made = self;
            made.rows = rows;
            made.pairs.rows = rows.data();
            return made;
          },
          nb::arg("rows").noconvert(), "The same rules for other queries, by their numbers among all m.")
      .def(
          "fill",
          [](const BoundAllowed& self, const Table& table) {
            const std::int64_t m = self.queries(), n = self.points();
            check_shape("table", table, {m, n});
            Unlocked unlocked;
            AllowedRow row;
            for (std::int64_t i = 0; i < m; ++i) {
              row.open(self.pairs, i);
              for (std::int64_t j = 0; j < n; ++j) table.data()[i * n + j] = allows(row, j);
            }
          },
          nb::arg("table").noconvert(), "Writes 1 for each query and each point that it may find, else 0.");
}

}  // namespace tonari
