#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "bind/binds.hpp"
#include "kdtree/search.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Dimensions = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Leaves = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Order = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A view, and the arrays that it looks at.
struct BoundTree {
  TreeView view;
  std::vector<Array> arrays;
  Numbers begins;
  Dimensions split_dimensions;
};

// One search, and the arrays that it reads and writes.
struct BoundTreeSearch {
  TreeTask task;
  TreeSearch search;
  Rows queries;
  std::optional<Numbers> order, self_ids;
  Output distances, indices;
};

bool is_double(nb::dlpack::dtype type, const char* what) {
  if (type != nb::dtype<float>() && type != nb::dtype<double>()) {
    throw nb::type_error((std::string(what) + " are not float32 or float64").c_str());
  }
  return type == nb::dtype<double>();
}

bool is_wide(nb::dlpack::dtype type) {
  if (type != nb::dtype<std::int32_t>() && type != nb::dtype<std::int64_t>()) {
    throw nb::type_error("ids are not int32 or int64");
  }
  return type == nb::dtype<std::int64_t>();
}

}  // namespace

void bind_kdtree_search(Module& module) {
  Class<BoundTree>(module, "TreeView", "The arrays of a tonari.kdtree.cpu.tree.Tree; see kdtree/search.hpp.")
      .def(
          "__init__",
          [](BoundTree* self, std::int64_t height, const Array& rows, const Numbers& begins, const Array& ids,
             const std::vector<Array>& boxes, const Dimensions& split_dimensions, const Array& split_values) {
            BoundTree tree;
            tree.arrays = boxes;
            tree.arrays.insert(tree.arrays.end(), {rows, ids, split_values});
            tree.begins = begins;
            tree.split_dimensions = split_dimensions;
            TreeView& view = tree.view;
            view.d = static_cast<std::int64_t>(rows.shape(1));
            view.height = height;
            view.capacity = static_cast<std::int64_t>(rows.shape(2));
            view.double_rows = is_double(rows.dtype(), "rows");
            view.wide_ids = is_wide(ids.dtype());
            view.begins = begins.data();
            view.ids = ids.data();
            view.rows = rows.data();
            for (const Array& level : boxes) view.boxes.push_back(level.data());
            view.split_dimensions = split_dimensions.data();
            view.split_values = split_values.data();
            new (self) BoundTree(std::move(tree));
          },
          nb::arg("height"), nb::arg("rows"), nb::arg("begins"), nb::arg("ids"), nb::arg("boxes"),
          nb::arg("split_dimensions"), nb::arg("split_values"))
      .def(
          "first_leaves",
          [](const BoundTree& tree, const Rows& queries, std::int64_t begin, std::int64_t end, const Leaves& leaves) {
            const RowsView rows = view_of(queries);
            Unlocked unlocked;
            first_leaves(tree.view, rows, begin, end, leaves.data());
          },
          nb::arg("queries"), nb::arg("begin"), nb::arg("end"), nb::arg("leaves").noconvert());

  module.def(
      "order_by_leaf",
      [](const Leaves& leaves, std::int64_t count, const Order& order) {
        const auto m = static_cast<std::int64_t>(leaves.shape(0));
        Unlocked unlocked;
        order_by_leaf(leaves.data(), m, count, order.data());
      },
      nb::arg("leaves").noconvert(), nb::arg("count"), nb::arg("order").noconvert(),
      "Numbers of the entries of `leaves`, all below `count`, in ascending order of (leaf, number).");

  Class<BoundTreeSearch>(module, "TreeSearch", "One search through a tree; see kdtree/search.hpp.")
      .def(
          "__init__",
          [](BoundTreeSearch* self, const BoundTree& tree, const std::string& isa, const std::string& metric,
             std::int64_t k, const Rows& queries, std::optional<Numbers> order, std::optional<Numbers> self_ids,
             const Output& distances, const Output& indices) {
            const TreeTask task{
                .tree = &tree.view,
                .metric = metric_named(metric),
                .k = k,
                .queries = view_of(queries),
                .order = order ? order->data() : nullptr,
                .self_ids = self_ids ? self_ids->data() : nullptr,
                .double_output = is_double(distances.dtype(), "distances"),
                .distances = distances.data(),
                .indices = indices.data()};
            new (self) BoundTreeSearch{task,      tree_search(isa_named(isa)), queries, std::move(order),
                                       std::move(self_ids), distances, indices};
          },
          nb::arg("tree"), nb::arg("isa"), nb::arg("metric"), nb::arg("k"), nb::arg("queries"), nb::arg("order").none(),
          nb::arg("self_ids").none(), nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
          nb::keep_alive<1, 2>())
      .def(
          "run",
          [](const BoundTreeSearch& self, std::int64_t begin, std::int64_t end, std::int64_t budget) {
            TreeVisits visits;
            Unlocked unlocked;
            const std::int64_t stopped = self.search(self.task, begin, end, budget, visits);
            return std::tuple(stopped, visits.leaves, visits.nodes, visits.points);
          },
          nb::arg("begin"), nb::arg("end"), nb::arg("budget"),
          "Search for queries from `begin` on in their order, until `end` or the budget is reached: "
          "(where it stopped, leaves, nodes, points visited).");
}

}  // namespace tonari
