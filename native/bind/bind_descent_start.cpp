#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "bind/binds.hpp"
#include "nn_descent/cluster_search.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

template <class T>
using Line = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Near = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::vector<const PackedPoints*> runs_of(const nb::list& packed) {
  std::vector<const PackedPoints*> runs;
  for (const nb::handle item : packed) runs.push_back(nb::cast<const PackedPoints*>(item));
  return runs;
}

struct BoundPieces {
  Line<std::int32_t> order;
  Line<std::int64_t> begins, clusters, sides, firsts;

  Pieces view() const { return {order.data(), begins.data(), clusters.data(), sides.data(), firsts.data()}; }
};

// One search, and the arrays that it reads and writes.
struct BoundSearch {
  ClusterTask task;
  Rows rows;
  BoundPieces seekers, members;
  nb::list packed;
  Near near;
  std::optional<Line<std::int32_t>> places;
  Places entries;
};

}  // namespace

void bind_descent_start(Module& module) {
  module.def(
      "best_scores",
      [](const std::string& kernel, const Form& form, const Rows& queries, std::int64_t begin, std::int64_t end,
         const nb::list& packed, const Places& places) {
        const Kernel& chosen = kernel_named(kernel);
        const RowsView rows = view_of(queries);
        const std::vector<const PackedPoints*> runs = runs_of(packed);
        const auto count = static_cast<std::int64_t>(places.shape(1));
        Unlocked unlocked;
        ScoreBlock block(chosen, form, count);
        block.open(rows, begin, end);
        std::int64_t first = 0;
        for (const PackedPoints* run : runs) {
          block.screen(*run, first);
          first += run->count();
        }
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t found = block.finish(row - begin, -1, count, places.data() + row * count);
          if (found < count) throw std::logic_error("a query met fewer points than it needs");
        }
      },
      nb::arg("kernel"), nb::arg("form"), nb::arg("queries"), nb::arg("begin"), nb::arg("end"), nb::arg("packed"),
      nb::arg("places").noconvert(),
      "The points of least score for queries [begin, end), written to their rows of `places`; see "
      "nn_descent/score_block.hpp.");

  Class<BoundPieces>(module, "Pieces", "Rows in pieces, by cluster; see nn_descent/cluster_search.hpp.")
      .def(
          "__init__",
          [](BoundPieces* self, Line<std::int32_t> order, Line<std::int64_t> begins, Line<std::int64_t> clusters,
             Line<std::int64_t> sides, Line<std::int64_t> firsts) {
            new (self) BoundPieces{std::move(order), std::move(begins), std::move(clusters), std::move(sides),
                                   std::move(firsts)};
          },
          nb::arg("order"), nb::arg("begins"), nb::arg("clusters"), nb::arg("sides"), nb::arg("firsts"));

  Class<BoundSearch>(module, "ClusterSearch", "Near members of clusters; see nn_descent/cluster_search.hpp.")
      .def(
          "__init__",
          [](BoundSearch* self, const std::string& kernel, const Form& form, const Rows& rows,
             const BoundPieces& seekers, const BoundPieces& members, const nb::list& packed, const Near& near,
             std::optional<Line<std::int32_t>> places, std::int64_t probes, std::int64_t most, std::int64_t boundary,
             std::int32_t mark, const Places& entries) {
            const bool across = boundary >= 0;
            const auto count = static_cast<std::int64_t>(members.order.shape(0));
            const ClusterTask task{
                .kernel = &kernel_named(kernel),
                .form = &form,
                .rows = view_of(rows),
                .seekers = seekers.view(),
                .members = members.view(),
                .packed = runs_of(packed),
                .clusters = static_cast<std::int64_t>(members.firsts.shape(0)) - 1,
                .near = near.data(),
                .named = static_cast<std::int64_t>(near.shape(1)),
                .places = places ? places->data() : nullptr,
                .probes = probes,
                .most = most,
                .across = across,
                .there = {across ? boundary : count, across ? count - boundary : 0},
                .size = static_cast<std::int64_t>(entries.shape(1)),
                .mark = mark,
                .entries = entries.data()};
            new (self) BoundSearch{task, rows, seekers, members, packed, near, std::move(places), entries};
          },
          nb::arg("kernel"), nb::arg("form"), nb::arg("rows"), nb::arg("seekers"), nb::arg("members"),
          nb::arg("packed"), nb::arg("near"), nb::arg("places").none(), nb::arg("probes"), nb::arg("most"),
          nb::arg("boundary"), nb::arg("mark"), nb::arg("entries").noconvert(),
          nb::keep_alive<1, 3>())  // the form
      .def(
          "run",
          [](const BoundSearch& self, std::int64_t begin, std::int64_t end) {
            Unlocked unlocked;
            search_clusters(self.task, begin, end);
          },
          nb::arg("begin"), nb::arg("end"), "Fill the entries of the rows in blocks [begin, end) of the seekers.");
}

}  // namespace tonari
