#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bound_allowed.hpp"
#include "bind/bound_tree.hpp"
#include "exact/direct.hpp"
#include "kdtree/radius.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Limits = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A radius search, together with the arrays that it reads and writes.
struct BoundTreeRadius {
  TreeRadiusTask task;
  Isa isa;
  Rows queries;
  std::optional<Numbers> order, self_ids;
  Limits limits;
  Counts counts;
  std::unique_ptr<SharedEntries> entries;
  std::unique_ptr<TreePlaces> places;

  // Lets blocks copy the rules' entries into the order of the tree.
  void hold_entries() {
    if (task.allowed == nullptr || !task.allowed->has_entries()) return;
    entries = std::make_unique<SharedEntries>();
    task.entries = entries.get();
  }

  // Lets blocks look up excluded points by their places; all ids of the tree are numbers in the rules.
  void hold_places(std::int64_t n) {
    const AllowedPairs* const rules = task.allowed;
    if (rules == nullptr || !rules->copies || rules->excluded == nullptr || rules->ids != nullptr) return;
    if (task.tree->wide_ids || rules->n != n) return;
    places = std::make_unique<TreePlaces>();
    task.places = places.get();
  }
};

// A block of the search's queries.
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

// Checks the queries of a search and their limits, and returns the queries.
RowsView rows_in(const BoundTree& tree, const std::string& metric, const Rows& queries, const Limits& limits,
                 bool double_output) {
  if (!in_trees(metric_named(metric))) refuse("no tree serves " + metric);
  const RowsView rows = view_of(queries, "queries");
  check_columns("queries", rows, tree.view.d);
  require(tree.view.double_rows || (!double_output && rows.dtype != Dtype::f64),
          "a tree of float32 cannot answer in float64");
  check_shape("limits", limits, {rows.n});
  for (std::int64_t i = 0; i < rows.n; ++i) {
    require(!std::isnan(limits.data()[i]), "limits: one is not a number");
  }
  return rows;
}

// A radius search of a few queries in one call, with the number of points that each finds.
struct FewWithin {
  std::vector<std::int64_t> counts;
  TreeRadiusTask task;
  std::unique_ptr<TreeRadius> block;

  FewWithin(const BoundTree& tree, const std::string& metric, const Rows& queries, const Limits& limits, bool lists,
            bool double_output) {
    const RowsView rows = rows_in(tree, metric, queries, limits, double_output);
    counts.resize(static_cast<std::size_t>(rows.n));
    task.tree = &tree.view;
    task.metric = metric_named(metric);
    task.queries = rows;
    task.limits = limits.data();
    task.lists = lists;
    task.double_output = double_output;
    task.counts = counts.data();
  }

  // Returns false if the queries contain a value that is refused.
  bool run(Isa isa) {
    if (is_refused(task.queries)) return false;
    block = tree_radius(isa)(task, 0, task.queries.n);
    TreeVisits visits;
    while (!block->is_finished()) block->run(std::numeric_limits<std::int64_t>::max(), visits);
    return true;
  }
};

template <class Value, class Index>
void bind_few(Module& module) {
  module.def(
      "find_in_tree",
      [](const BoundTree& tree, const std::string& isa, const std::string& metric, const Rows& queries,
         const Limits& limits, const Counts& indptr, const Output<Value>& distances,
         const Output<Index>& indices) -> std::optional<std::pair<std::int64_t, bool>> {
        FewWithin few(tree, metric, queries, limits, true, sizeof(Value) == sizeof(double));
        const std::int64_t m = few.task.queries.n;
        require(tree.view.wide_ids == (sizeof(Index) == sizeof(std::int64_t)), "indices: expected the type of the ids");
        check_shape("indptr", indptr, {m + 1});
        check_shape("distances", distances, {m * tree.n});
        check_shape("indices", indices, {m * tree.n});
        const Isa chosen = isa_named(isa);
        Unlocked unlocked;
        if (!few.run(chosen)) return std::nullopt;
        indptr.data()[0] = 0;
        std::partial_sum(few.counts.begin(), few.counts.end(), indptr.data() + 1);
        few.block->write(indptr.data(), distances.data(), indices.data());
        const std::int64_t found = indptr.data()[m];
        return std::pair(found, are_plain(distances.data(), found));
      },
      nb::arg("tree"), nb::arg("isa"), nb::arg("metric"), nb::arg("queries").noconvert(), nb::arg("limits").noconvert(),
      nb::arg("indptr").noconvert(), nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
      "The points within the limit of each of a few queries, whose values need not be checked, in one call; there is "
      "room for all pairs. Returns their number, and whether all values are far from the ends of float32; None if a "
      "value of the queries is refused.");
}

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
            const RowsView rows = rows_in(tree, metric, queries, limits, double_output);
            check_order(order, rows.n);
            if (self_ids) check_shape("self_ids", *self_ids, {rows.n});
            require(self_ids || !later, "later: expected self_ids, which the points come after");
            require(lists || !later, "later: expected lists=True");
            check_shape("counts", counts, {rows.n});
            check_allowed(allowed, rows.n, allowed != nullptr ? allowed->points() : 0, self_ids);
            require(allowed == nullptr || (0 <= tree.least && tree.most < allowed->points()),
                    "allowed: expected rules for all points of the tree");
            const TreeRadiusTask task{.tree = &tree.view,
                                      .metric = metric_named(metric),
                                      .queries = rows,
                                      .limits = limits.data(),
                                      .order = order ? order->data() : nullptr,
                                      .self_ids = self_ids ? self_ids->data() : nullptr,
                                      .allowed = allowed != nullptr ? &allowed->pairs : nullptr,
                                      .later = later,
                                      .lists = lists,
                                      .double_output = double_output,
                                      .counts = counts.data()};
            new (self) BoundTreeRadius{
                task, isa_named(isa), queries, std::move(order), std::move(self_ids), limits, counts, {}, {}};
            self->hold_entries();
            self->hold_places(tree.n);
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
  bind_few<float, std::int32_t>(module);
  bind_few<float, std::int64_t>(module);
  bind_few<double, std::int32_t>(module);
  bind_few<double, std::int64_t>(module);
  module.def(
      "count_in_tree",
      [](const BoundTree& tree, const std::string& isa, const std::string& metric, const Rows& queries,
         const Limits& limits, bool double_output, const Counts& counts) {
        FewWithin few(tree, metric, queries, limits, false, double_output);
        check_shape("counts", counts, {few.task.queries.n});
        const Isa chosen = isa_named(isa);
        few.task.counts = counts.data();
        Unlocked unlocked;
        return few.run(chosen);
      },
      nb::arg("tree"), nb::arg("isa"), nb::arg("metric"), nb::arg("queries").noconvert(), nb::arg("limits").noconvert(),
      nb::arg("double_output"), nb::arg("counts").noconvert(),
      "Counts the points that find_in_tree finds; False if a value of the queries is refused.");
}

}  // namespace tonari
