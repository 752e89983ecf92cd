#include <nanobind/stl/string.h>

#include "bind/bound_tree.hpp"
#include "spanning/forest.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Lists = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Weights = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pairs = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A forest of components, together with the arrays that it reads.
struct BoundForest {
  BoundForest(const SpanningTask& task, Isa given, Doubles read, Lists distances_read, Lists indices_read)
      : forest(task),
        walk(leaving_walk(given)),
        core(std::move(read)),
        distances(std::move(distances_read)),
        indices(std::move(indices_read)) {}

  Forest forest;
  LeavingWalk walk;
  Doubles core;
  Lists distances, indices;
};

constexpr std::int64_t kMostPoints = std::numeric_limits<std::int32_t>::max();  // numbers of components are int32

}  // namespace

void bind_spanning(Module& module) {
  Class<BoundForest>(module, "Forest", "Components of points that join by their first edges; see spanning/forest.hpp.")
      .def(
          "__init__",
          [](BoundForest* self, const BoundTree& tree, const std::string& isa, const std::string& metric,
             const Doubles& core, const Lists& distances, const Lists& indices) {
            const Metric chosen = metric_named(metric);
            if (!in_trees(chosen)) refuse("no tree serves " + metric);
            check_number("points", tree.n, 1, kMostPoints);
            const bool doubles = is_double("distances", distances.dtype());
            require(tree.view.double_rows || !doubles, "a tree of float32 cannot answer in float64");
            const bool wide = is_wide("indices", indices.dtype());
            const auto k = static_cast<std::int64_t>(distances.shape(1));
            check_at_least("columns of distances", k, 1);
            check_shape("core", core, {tree.n});
            check_shape("distances", distances, {tree.n, k});
            check_shape("indices", indices, {tree.n, k});
            wide ? check_numbers("indices", static_cast<const std::int64_t*>(indices.data()), tree.n * k, -1, tree.n)
                 : check_numbers("indices", static_cast<const std::int32_t*>(indices.data()), tree.n * k, -1, tree.n);
            tree.view.wide_ids
                ? check_numbers("ids", static_cast<const std::int64_t*>(tree.view.ids), tree.n, 0, tree.n)
                : check_numbers("ids", static_cast<const std::int32_t*>(tree.view.ids), tree.n, 0, tree.n);
            const ListsView lists{.k = k,
                                  .double_values = doubles,
                                  .wide_ids = wide,
                                  .distances = distances.data(),
                                  .indices = indices.data()};
            const SpanningTask task{.tree = &tree.view,
                                    .metric = chosen,
                                    .n = tree.n,
                                    .double_output = doubles,
                                    .core = core.data(),
                                    .lists = lists};
            Unlocked unlocked;
            new (self) BoundForest(task, isa_named(isa), core, distances, indices);
          },
          nb::arg("tree"), nb::arg("isa"), nb::arg("metric"), nb::arg("core").noconvert(),
          nb::arg("distances").noconvert(), nb::arg("indices").noconvert(), nb::keep_alive<1, 2>())  // the tree
      .def_prop_ro("count", [](const BoundForest& self) { return self.forest.count; })
      .def(
          "offer_listed",
          [](BoundForest& self, std::int64_t begin, std::int64_t end) {
            check_range("points", begin, end, 0, self.forest.task.n);
            Unlocked unlocked;
            self.forest.offer_listed(begin, end);
          },
          nb::arg("begin"), nb::arg("end"), "Offer the edges of the lists of points [begin, end) to their components.")
      .def(
          "walk",
          [](BoundForest& self, std::int64_t begin, std::int64_t end, std::int64_t budget) {
            check_range("leaves", begin, end, 0, std::int64_t{1} << self.forest.task.tree->height);
            Unlocked unlocked;
            return self.walk(self.forest, begin, end, budget);
          },
          nb::arg("begin"), nb::arg("end"), nb::arg("budget"),
          "Offer the first edges of the points of leaves from `begin` on, until leaf `end` or until the budget is "
          "reached; return where it stopped.")
      .def(
          "merge",
          [](BoundForest& self) {
            require(self.forest.is_walked(), "a component has no edge; call walk() for all leaves first");
            Unlocked unlocked;
            self.forest.merge();
          },
          "Join all components along their first edges, which the walks of all leaves have found.")
      .def(
          "write",
          [](const BoundForest& self, const Weights& weights, const Pairs& pairs) {
            const auto& edges = self.forest.edges;
            check_shape("weights", weights, {static_cast<std::int64_t>(edges.size())});
            check_shape("pairs", pairs, {static_cast<std::int64_t>(edges.size())});
            for (std::size_t at = 0; at < edges.size(); ++at) {
              weights.data()[at] = edges[at].weight;
              pairs.data()[at] = edges[at].pair;
            }
          },
          nb::arg("weights").noconvert(), nb::arg("pairs").noconvert(), "Write the edges of the tree so far.");
}

}  // namespace tonari
