#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "bind/bound_allowed.hpp"
#include "bind/bound_tree.hpp"
#include "kdtree/radius.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Limits = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A search, together with the arrays that it reads and writes.
struct BoundTreeRadius {
  TreeRadiusTask task;
  Isa isa;
  Rows queries;
  std::optional<Numbers> order, self_ids;
  Limits limits;
  Counts counts;
  TreeEntries entries;

  // Copies rules in the order of the tree, if there are enough queries.
  void copy_entries(std::int64_t n) {
    constexpr std::int64_t per_query = 64;  // a copied entry takes as long as about one that is looked up
    if (task.allowed == nullptr || task.queries.n * per_query < n) return;
    Unlocked unlocked;
    entries = entries_in_tree(*task.tree, n, *task.allowed);
    if (!entries.of_points.empty()) task.entries = &entries;
  }
};

// A block of a search's queries.
struct BoundTreeRadiusBlock {
  const BoundTreeRadius* search;
  std::int64_t begin, end;
  std::unique_ptr<TreeRadius> block;

  template <class Value, class Index>
  void write(const Numbers& indptr, const Output<Value>& distances, const Output<Index>& indices) const {
    const TreeRadiusTask& task = search->task;
    require(task.lists, "the search only counts; expected lists=True");
    require(block->is_finished(), "the block is not finished; call run() until it is");
    check_type("distances", distances.dtype(), task.double_output ? nb::dtype<double>() : nb::dtype<float>());
    check_type("indices", indices.dtype(), task.tree->wide_ids ? nb::dtype<std::int64_t>() : nb::dtype<std::int32_t>());
    check_shape("indptr", indptr, {task.queries.n + 1});
    const auto total = static_cast<std::int64_t>(indices.shape(0));
    check_shape("distances", distances, {total});
    check_shape("indices", indices, {total});
    std::int64_t listed = 0;
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t query = task.order != nullptr ? task.order[place] : place;
      const std::int64_t first = indptr.data()[query];
      require(0 <= first && first <= total && task.counts[query] <= total - first &&
                  indptr.data()[query + 1] - first == task.counts[query],
              "indptr: expected the running sums of counts");
      listed += task.counts[query];
    }
    require(listed == block->listed(), "counts: have changed since run() wrote them");
    Unlocked unlocked;
    block->write(indptr.data(), distances.data(), indices.data());
  }
};

template <class Value, class Index>
void bind_write(Class<BoundTreeRadiusBlock>& block) {
  block.def("write", &BoundTreeRadiusBlock::write<Value, Index>, nb::arg("indptr").noconvert(),
            nb::arg("distances").noconvert(), nb::arg("indices").noconvert());
}

}  // namespace

void bind_kdtree_radius(Module& module) {
  Class<BoundTreeRadius>(module, "TreeRadius", "A search within radii through a tree; see kdtree/radius.hpp.")
      .def(
          "__init__",
          [](BoundTreeRadius* self, const BoundTree& tree, const std::string& isa, const std::string& metric,
             const Rows& queries, std::optional<Numbers> order, const Limits& limits, std::optional<Numbers> self_ids,
             bool later, bool lists, bool double_output, const Counts& counts, const BoundAllowed* allowed) {
            const Metric chosen = metric_named(metric);
            if (!in_trees(chosen)) refuse("no tree serves " + metric);
            const RowsView rows = view_of(queries, "queries");
            check_columns("queries", rows, tree.view.d);
            require(tree.view.double_rows || (!double_output && rows.dtype != Dtype::f64),
                    "a tree of float32 cannot answer in float64");
            check_order(order, rows.n);
            check_shape("limits", limits, {rows.n});
            for (std::int64_t i = 0; i < rows.n; ++i) {
              require(!std::isnan(limits.data()[i]), "limits: one is not a number");
            }
            if (self_ids) check_shape("self_ids", *self_ids, {rows.n});
            require(self_ids || !later, "later: expected self_ids, which the points come after");
            require(lists || !later, "later: expected lists=True");
            check_shape("counts", counts, {rows.n});
            check_allowed(allowed, rows.n, allowed != nullptr ? allowed->points() : 0, self_ids);
            require(allowed == nullptr || (0 <= tree.least && tree.most < allowed->points()),
                    "allowed: expected rules for all points of the tree");
            const TreeRadiusTask task{.tree = &tree.view,
                                      .metric = chosen,
                                      .queries = rows,
                                      .limits = limits.data(),
                                      .order = order ? order->data() : nullptr,
                                      .self_ids = self_ids ? self_ids->data() : nullptr,
                                      .allowed = allowed != nullptr ? &allowed->pairs : nullptr,
                                      .later = later,
                                      .lists = lists,
                                      .double_output = double_output,
                                      .counts = counts.data()};
            new (self) BoundTreeRadius{task,   isa_named(isa), queries, std::move(order), std::move(self_ids),
                                       limits, counts,         {}};
            self->copy_entries(tree.n);
          },
          nb::arg("tree"), nb::arg("isa"), nb::arg("metric"), nb::arg("queries").noconvert(),
          nb::arg("order").noconvert().none(), nb::arg("limits").noconvert(), nb::arg("self_ids").noconvert().none(),
          nb::arg("later"), nb::arg("lists"), nb::arg("double_output"), nb::arg("counts").noconvert(),
          nb::arg("allowed").none() = nb::none(), nb::keep_alive<1, 2>(),
          nb::keep_alive<1, 13>());  // the tree and the rules

  Class<BoundTreeRadiusBlock> block(module, "TreeRadiusBlock", "A block of the queries of a TreeRadius.");
  block
      .def(
          "__init__",
          [](BoundTreeRadiusBlock* self, const BoundTreeRadius& search, std::int64_t begin, std::int64_t end) {
            check_range("queries", begin, end, 0, search.task.queries.n);
            new (self) BoundTreeRadiusBlock{&search, begin, end, tree_radius(search.isa)(search.task, begin, end)};
          },
          nb::arg("search"), nb::arg("begin"), nb::arg("end"), nb::keep_alive<1, 2>())  // the search
      .def_prop_ro("finished", [](const BoundTreeRadiusBlock& self) { return self.block->is_finished(); })
      .def(
          "run",
          [](BoundTreeRadiusBlock& self, std::int64_t budget) {
            TreeVisits visits;
            Unlocked unlocked;
            const std::int64_t finished = self.block->run(budget, visits);
            return std::tuple(finished, visits.leaves, visits.nodes, visits.points);
          },
          nb::arg("budget"),
          "Go on until all queries are finished or the budget is reached: (queries finished, leaves, nodes, points "
          "visited).");
  bind_write<float, std::int32_t>(block);
  bind_write<float, std::int64_t>(block);
  bind_write<double, std::int32_t>(block);
  bind_write<double, std::int64_t>(block);
}

}  // namespace tonari
