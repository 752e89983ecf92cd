// The rules of a search as bindings hold them: the view that kernels read, together with the arrays that it refers to.
#pragma once

#include <optional>

#include "bind/binds.hpp"
#include "core/allowed.hpp"

namespace tonari {

struct BoundAllowed {
  using Numbers = nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
  using Mask = nanobind::ndarray<const std::uint8_t, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

  AllowedPairs pairs;
  std::optional<Mask> mask;
  std::optional<Numbers> query_groups, point_groups, excluded, begins, rows, ids;

  std::int64_t queries() const { return rows ? static_cast<std::int64_t>(rows->size()) : pairs.m; }
  std::int64_t points() const { return ids ? static_cast<std::int64_t>(ids->size()) : pairs.n; }
};

// Checks that rules are for m queries and n points, and that no other argument excludes points.
template <class Numbers>
void check_allowed(const BoundAllowed* allowed, std::int64_t m, std::int64_t n,
                   const std::optional<Numbers>& self_ids) {
  if (allowed == nullptr) return;
  check_number("queries of allowed", allowed->queries(), m, m);
  check_number("points of allowed", allowed->points(), n, n);
  require(!self_ids, "self_ids: expected None with allowed, which has rules for them");
}

}  // namespace tonari
