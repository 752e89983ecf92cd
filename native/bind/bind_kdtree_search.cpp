#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bound_tree.hpp"
#include "exact/direct.hpp"
#include "kdtree/buffered.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Dimensions = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Leaves = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Order = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A k-NN search, together with the arrays that it reads and writes.
struct BoundTreeSearch {
  TreeTask task;
  Isa isa;
  Rows queries;
  std::optional<Numbers> order, self_ids;
  Output distances, indices;
};

// The rounds of the buffered traversal for a block of queries, by the instruction set of the search.
struct BoundTreeRounds {
  std::unique_ptr<TreeRounds> rounds;
};

constexpr int kMostHeight = 31;  // leaf numbers are int32

// Checks the shapes of all levels of boxes, and that a search cannot enter a child beyond the last one.
template <class T>
void check_boxes(const std::vector<Array>& boxes, std::int64_t leaves, std::int64_t d) {
  std::int64_t children = leaves;
  for (std::size_t level = 0; level == 0 || children > 1; ++level) {
    const std::int64_t nodes = (children + kTreeWidth - 1) / kTreeWidth;
    if (level == boxes.size()) {
      refuse("boxes: " + std::to_string(level) + " levels, expected more, up to one of a single node");
    }
    check_shape("boxes", boxes[level], {nodes, d, 2, kTreeWidth});
    const T* last = static_cast<const T*>(boxes[level].data()) + (nodes - 1) * d * 2 * kTreeWidth;
    for (std::int64_t lane = children - (nodes - 1) * kTreeWidth; lane < kTreeWidth; ++lane) {
      require(last[lane] == std::numeric_limits<T>::infinity(), "boxes: expected +inf for children that are absent");
    }
    children = nodes;
    if (nodes == 1 && boxes.size() > level + 1) {
      refuse("boxes: " + std::to_string(boxes.size()) + " levels, expected " + std::to_string(level + 1));
    }
  }
}

template <class Id>
std::pair<std::int64_t, std::int64_t> extremes(const Id* ids, std::int64_t n) {
  const auto [least, most] = std::minmax_element(ids, ids + n);
  return {*least, *most};
}

// Checks the arguments of a search, and returns its task.
TreeTask task_of(const BoundTree& tree, const std::string& metric, std::int64_t k, const Rows& queries,
                 const std::optional<Numbers>& order, const std::optional<Numbers>& self_ids, const Output& distances,
                 const Output& indices) {
  const Metric chosen = metric_named(metric);
  if (!in_trees(chosen)) refuse("no tree serves " + metric);
  const RowsView rows = view_of(queries, "queries");
  const bool doubles = is_double("distances", distances.dtype());
  check_columns("queries", rows, tree.view.d);
  check_number("k", k, 1, tree.n - (self_ids ? 1 : 0));
  require(tree.view.double_rows || (!doubles && rows.dtype != Dtype::f64),
          "a tree of float32 cannot answer in float64");
  check_type("indices", indices.dtype(), tree.view.wide_ids ? nb::dtype<std::int64_t>() : nb::dtype<std::int32_t>());
  check_shape("distances", distances, {rows.n, k});
  check_shape("indices", indices, {rows.n, k});
  if (self_ids) check_shape("self_ids", *self_ids, {rows.n});
  check_order(order, rows.n);
  return TreeTask{.tree = &tree.view,
                  .metric = chosen,
                  .k = k,
                  .queries = rows,
                  .order = order ? order->data() : nullptr,
                  .self_ids = self_ids ? self_ids->data() : nullptr,
                  .double_output = doubles,
                  .distances = distances.data(),
                  .indices = indices.data()};
}

}  // namespace

void bind_kdtree_search(Module& module) {
  Class<BoundTree>(module, "TreeView", "The arrays of a tonari.kdtree.cpu.tree.Tree; see kdtree/search.hpp.")
      .def(
          "__init__",
          [](BoundTree* self, std::int64_t height, const Array& rows, const Numbers& begins, const Array& ids,
             const std::vector<Array>& boxes, const Dimensions& split_dimensions, const Array& split_values) {
            const bool doubles = is_double("rows", rows.dtype());
            const bool wide = is_wide("ids", ids.dtype());
            check_number("height", height, 0, kMostHeight);
            require(rows.ndim() == 3 && rows.shape(1) > 0, "rows: expected shape (leaves, d, capacity)");
            const std::int64_t leaves = std::int64_t{1} << height, n = static_cast<std::int64_t>(ids.size());
            const auto d = static_cast<std::int64_t>(rows.shape(1));
            const auto capacity = static_cast<std::int64_t>(rows.shape(2));
            check_shape("rows", rows, {leaves, d, capacity});
            require(capacity % kTreeWidth == 0, "rows: expected a capacity of whole blocks of 16 points");
            check_shape("ids", ids, {n});
            check_shape("begins", begins, {leaves + 1});
            check_ascending("begins", begins.data(), leaves + 1, 0, 0, capacity);
            check_number("last of the begins", begins.data()[leaves], n, n);
            for (const Array& level : boxes) check_type("boxes", level.dtype(), rows.dtype());
            doubles ? check_boxes<double>(boxes, leaves, d) : check_boxes<float>(boxes, leaves, d);
            check_shape("split_dimensions", split_dimensions, {leaves - 1});
            check_numbers("split_dimensions", split_dimensions.data(), leaves - 1, 0, d);
            check_type("split_values", split_values.dtype(), rows.dtype());
            check_shape("split_values", split_values, {leaves - 1});
            BoundTree tree;
            tree.n = n;
            tree.arrays = boxes;
            tree.arrays.insert(tree.arrays.end(), {rows, ids, split_values});
            tree.begins = begins;
            tree.split_dimensions = split_dimensions;
            TreeView& view = tree.view;
            view.d = d;
            view.height = height;
            view.capacity = capacity;
            view.double_rows = doubles;
            view.wide_ids = wide;
            view.begins = begins.data();
            view.ids = ids.data();
            view.rows = rows.data();
            for (const Array& level : boxes) view.boxes.push_back(level.data());
            view.split_dimensions = split_dimensions.data();
            view.split_values = split_values.data();
            if (n > 0 && wide)
              std::tie(tree.least, tree.most) = extremes(static_cast<const std::int64_t*>(ids.data()), n);
            if (n > 0 && !wide)
              std::tie(tree.least, tree.most) = extremes(static_cast<const std::int32_t*>(ids.data()), n);
            new (self) BoundTree(std::move(tree));
          },
          nb::arg("height"), nb::arg("rows").noconvert(), nb::arg("begins").noconvert(), nb::arg("ids").noconvert(),
          nb::arg("boxes").noconvert(), nb::arg("split_dimensions").noconvert(), nb::arg("split_values").noconvert())
      .def(
          "first_leaves",
          [](const BoundTree& tree, const Rows& queries, std::int64_t begin, std::int64_t end, const Leaves& leaves) {
            const RowsView rows = view_of(queries, "queries");
            check_columns("queries", rows, tree.view.d);
            check_range("queries", begin, end, 0, rows.n);
            check_shape("leaves", leaves, {rows.n});
            Unlocked unlocked;
            first_leaves(tree.view, rows, begin, end, leaves.data());
          },
          nb::arg("queries").noconvert(), nb::arg("begin"), nb::arg("end"), nb::arg("leaves").noconvert());

  module.def(
      "order_by_leaf",
      [](const Leaves& leaves, std::int64_t count, const Order& order) {
        const auto m = static_cast<std::int64_t>(leaves.shape(0));
        check_number("count", count, 0, std::int64_t{1} << kMostHeight);
        check_shape("leaves", leaves, {m});
        check_shape("order", order, {m});
        Unlocked unlocked;
        check_numbers("leaves", leaves.data(), m, 0, count);
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
            const TreeTask task = task_of(tree, metric, k, queries, order, self_ids, distances, indices);
            new (self) BoundTreeSearch{task,      isa_named(isa), queries, std::move(order), std::move(self_ids),
                                       distances, indices};
          },
          nb::arg("tree"), nb::arg("isa"), nb::arg("metric"), nb::arg("k"), nb::arg("queries").noconvert(),
          nb::arg("order").noconvert().none(), nb::arg("self_ids").noconvert().none(), nb::arg("distances").noconvert(),
          nb::arg("indices").noconvert(), nb::keep_alive<1, 2>())  // the tree
      .def(
          "run",
          [](const BoundTreeSearch& self, std::int64_t begin, std::int64_t end, std::int64_t budget) {
            check_range("queries", begin, end, 0, self.task.queries.n);
            TreeVisits visits;
            Unlocked unlocked;
            const std::int64_t stopped = tree_search(self.isa)(self.task, begin, end, budget, visits);
            return std::tuple(stopped, visits.leaves, visits.nodes, visits.points);
          },
          nb::arg("begin"), nb::arg("end"), nb::arg("budget"),
          "Search for queries from `begin` on in their order, until `end` or the budget is reached: "
          "(where it stopped, leaves, nodes, points visited).");

  module.def(
      "search_tree",
      [](const BoundTree& tree, const std::string& isa, const std::string& metric, std::int64_t k, const Rows& queries,
         const Output& distances, const Output& indices) -> std::optional<bool> {
        const TreeTask task = task_of(tree, metric, k, queries, {}, {}, distances, indices);
        const TreeSearch search = tree_search(isa_named(isa));
        TreeVisits visits;
        Unlocked unlocked;
        if (is_refused(task.queries)) return std::nullopt;
        search(task, 0, task.queries.n, std::numeric_limits<std::int64_t>::max(), visits);
        const std::int64_t count = task.queries.n * k;
        return task.double_output ? are_plain(static_cast<const double*>(task.distances), count)
                                  : are_plain(static_cast<const float*>(task.distances), count);
      },
      nb::arg("tree"), nb::arg("isa"), nb::arg("metric"), nb::arg("k"), nb::arg("queries").noconvert(),
      nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
      "A search of a few queries, whose values need not be checked, in one call: whether all values are far from the "
      "ends of float32; None if a value of the queries is refused.");

  Class<BoundTreeRounds>(module, "TreeRounds", "The buffered traversal of a block of queries; see kdtree/buffered.hpp.")
      .def(
          "__init__",
          [](BoundTreeRounds* self, const BoundTreeSearch& search, std::int64_t begin, std::int64_t end,
             std::int64_t buffer) {
            require(rounds_serve(search.task),
                    "the buffered traversal serves squares of differences in trees of float32");
            check_range("queries", begin, end, 0, search.task.queries.n);
            check_number("queries of a block", end - begin, 0, std::numeric_limits<std::int32_t>::max());
            check_number("buffer", buffer, 1, std::numeric_limits<std::int32_t>::max());
            new (self) BoundTreeRounds{tree_rounds(search.isa)(search.task, begin, end, buffer)};
          },
          nb::arg("search"), nb::arg("begin"), nb::arg("end"), nb::arg("buffer"), nb::keep_alive<1, 2>())  // the search
      .def(
          "run",
          [](BoundTreeRounds& self, std::int64_t budget) {
            TreeVisits visits;
            Unlocked unlocked;
            const std::int64_t finished = self.rounds->run(budget, visits);
            return std::tuple(finished, visits.leaves, visits.nodes, visits.points);
          },
          nb::arg("budget"),
          "Go on until all queries are finished or the budget is reached: (queries finished, leaves, nodes, points "
          "visited).")
      .def(
          "counts",
          [](const BoundTreeRounds& self) {
            const TreeRoundCounts& counts = self.rounds->counts;
            return std::tuple(counts.rounds, counts.emptied, counts.full, counts.tiles, counts.find_seconds,
                              counts.process_seconds);
          },
          "(rounds, times that buffers were emptied, those because one was half full, tiles, seconds of finding "
          "leaves, "
          "seconds of emptying buffers) so far.");
}

}  // namespace tonari
