// A k-d tree as bindings hold it: the view that kernels read, together with the arrays that it refers to.
#pragma once

#include <optional>
#include <vector>

#include "bind/binds.hpp"
#include "kdtree/search.hpp"

namespace tonari {

struct BoundTree {
  TreeView view;
  std::vector<nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>> arrays;
  nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu> begins;
  nanobind::ndarray<const std::int32_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu> split_dimensions;
  std::int64_t n = 0;                 // number of points
  std::int64_t least = 0, most = -1;  // the smallest and the largest of their ids
};

// Checks an order of m queries, if there is one.
template <class Numbers>
void check_order(const std::optional<Numbers>& order, std::int64_t m) {
  if (!order) return;
  check_shape("order", *order, {m});
  check_numbers("order", order->data(), m, 0, m);
}

}  // namespace tonari
