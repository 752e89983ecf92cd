#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bind/binds.hpp"
#include "nn_descent/cluster_search.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

template <class T>
using Line = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Near = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr std::int64_t kMostPlaces = std::numeric_limits<std::int32_t>::max();

// Packed runs of points. Holds each run itself, since the caller's list of runs may change.
struct Runs {
  std::vector<nb::object> held;
  std::vector<const PackedPoints*> runs;
  std::int64_t count = 0;  // number of points in all runs

  Runs(const nb::list& packed, const Kernel& kernel, const Form& form) {
    for (const nb::handle item : packed) {
      if (!nb::isinstance<BoundPoints>(item)) refuse_type("packed: expected a list of PackedPoints");
      const auto& run = nb::cast<const BoundPoints&>(item);
      check_packed(run, kernel, form, Errors::ignored);
      held.push_back(nb::borrow(item));
      runs.push_back(&run.packed);
      count += run.packed.count();
    }
    check_number("packed points", count, 0, kMostPlaces);
  }
};

// Rows in pieces whose arrays are checked: all numbers of rows, pieces and clusters in them are in range.
struct BoundPieces {
  Line<std::int32_t> order;
  Line<std::int64_t> begins, clusters, sides, firsts;

  std::int64_t rows() const { return static_cast<std::int64_t>(order.shape(0)); }
  std::int64_t pieces() const { return static_cast<std::int64_t>(clusters.shape(0)); }
  std::int64_t count() const { return static_cast<std::int64_t>(firsts.shape(0)) - 1; }  // number of clusters
  std::int64_t on_side_1() const {
    std::int64_t found = 0;
    for (std::int64_t piece = 0; piece < pieces(); ++piece) {
      found += sides.data()[piece] * (begins.data()[piece + 1] - begins.data()[piece]);
    }
    return found;
  }

  void check() const {
    const std::int64_t ends = count() + 1;
    check_number("length of the order", rows(), 0, kMostPlaces);
    check_at_least("length of the firsts", ends, 1);
    check_shape("order", order, {rows()});
    check_shape("begins", begins, {pieces() + 1});
    check_shape("clusters", clusters, {pieces()});
    check_shape("sides", sides, {pieces()});
    check_shape("firsts", firsts, {ends});
    check_numbers("order", order.data(), rows(), 0, rows());
    check_ascending("begins", begins.data(), pieces() + 1, 0, 1, rows());
    check_number("last of the begins", begins.data()[pieces()], rows(), rows());
    check_ascending("firsts", firsts.data(), ends, 0, 0, pieces());
    check_number("last of the firsts", firsts.data()[ends - 1], pieces(), pieces());
    check_numbers("clusters", clusters.data(), pieces(), 0, ends - 1);
    check_numbers("sides", sides.data(), pieces(), 0, 2);
    for (std::int64_t piece = 0; piece < pieces(); ++piece) {
      const std::int64_t* first = firsts.data() + clusters.data()[piece];
      require(first[0] <= piece && piece < first[1], "firsts and clusters of the pieces do not agree");
    }
  }

  Pieces view() const { return {order.data(), begins.data(), clusters.data(), sides.data(), firsts.data()}; }
};

// A search of near clusters, together with the arrays that it reads and writes.
struct BoundSearch {
  ClusterTask task;
  Rows rows;
  BoundPieces seekers, members;
  std::vector<nb::object> packed;
  Near near, ranked;
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
        const RowsView rows = view_of(queries, "queries");
        check_form(form, chosen, "queries", rows);
        check_range("queries", begin, end, 0, rows.n);
        const Runs points(packed, chosen, form);
        const auto count = static_cast<std::int64_t>(places.shape(1));
        check_shape("places", places, {rows.n, count});
        check_number("columns of the places", count, 1, points.count);
        if (begin == end) return;
        Unlocked unlocked;
        ScoreBlock block(chosen, form, count);
        block.open(rows, begin, end);
        std::int64_t first = 0;
        for (const PackedPoints* run : points.runs) {
          block.screen(*run, first);
          first += run->count();
        }
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t found = block.finish(row - begin, -1, count, places.data() + row * count);
          if (found < count) throw std::logic_error("a query met fewer points than it needs");
        }
      },
      nb::arg("kernel"), nb::arg("form"), nb::arg("queries").noconvert(), nb::arg("begin"), nb::arg("end"),
      nb::arg("packed"), nb::arg("places").noconvert(),
      "The points of least score for queries [begin, end), written to their rows of `places`; see "
      "exact/score_block.hpp.");

  Class<BoundPieces>(module, "Pieces", "Rows in pieces, by cluster; see nn_descent/cluster_search.hpp.")
      .def(
          "__init__",
          [](BoundPieces* self, Line<std::int32_t> order, Line<std::int64_t> begins, Line<std::int64_t> clusters,
             Line<std::int64_t> sides, Line<std::int64_t> firsts) {
            BoundPieces pieces{std::move(order), std::move(begins), std::move(clusters), std::move(sides),
                               std::move(firsts)};
            pieces.check();
            new (self) BoundPieces(std::move(pieces));
          },
          nb::arg("order").noconvert(), nb::arg("begins").noconvert(), nb::arg("clusters").noconvert(),
          nb::arg("sides").noconvert(), nb::arg("firsts").noconvert());

  Class<BoundSearch>(module, "ClusterSearch", "Near members of clusters; see nn_descent/cluster_search.hpp.")
      .def(
          "__init__",
          [](BoundSearch* self, const std::string& kernel, const Form& form, const Rows& rows,
             const BoundPieces& seekers, const BoundPieces& members, const nb::list& packed, const Near& near,
             const Near& ranked, std::optional<Line<std::int32_t>> places, std::int64_t probes, std::int64_t most,
             std::int64_t boundary, std::int32_t mark, const Places& entries) {
            const Kernel& chosen = kernel_named(kernel);
            const RowsView view = view_of(rows, "rows");
            const bool across = boundary >= 0;
            const std::int64_t count = members.rows(), clusters = members.count();
            const auto named = static_cast<std::int64_t>(near.shape(1));
            const auto size = static_cast<std::int64_t>(entries.shape(1));
            check_form(form, chosen, "rows", view);
            check_number("length of the seekers' order", seekers.rows(), view.n, view.n);
            Runs runs(packed, chosen, form);
            check_number("packed runs", std::ssize(runs.runs), members.pieces(), members.pieces());
            for (std::int64_t piece = 0; piece < members.pieces(); ++piece) {
              const std::int64_t* begin = members.begins.data() + piece;
              require(runs.runs[static_cast<std::size_t>(piece)]->count() == begin[1] - begin[0],
                      "packed: expected a run of as many points as each piece of the members has");
            }
            check_shape("near", near, {view.n, named});
            check_numbers("near", near.data(), view.n * named, 0, clusters);
            const auto ranks = static_cast<std::int64_t>(ranked.shape(1));
            check_shape("ranked", ranked, {clusters, ranks});
            check_numbers("ranked", ranked.data(), clusters * ranks, 0, clusters);
            check_number("boundary", boundary, -1, count);
            check_number("members on side 1", members.on_side_1(), across ? count - boundary : 0,
                         across ? count - boundary : 0);
            if (places) {
              require(!across && count == view.n,
                      "places: expected None where the rows are not the members, or with a boundary");
              check_shape("places", *places, {view.n});
            }
            check_at_least("probes", probes, 1);
            check_at_least("most", most, 1);
            check_shape("entries", entries, {view.n, size});
            check_at_least("columns of the entries", size, 1);
            const ClusterTask task{.kernel = &chosen,
                                   .form = &form,
                                   .rows = view,
                                   .seekers = seekers.view(),
                                   .members = members.view(),
                                   .packed = std::move(runs.runs),
                                   .clusters = clusters,
                                   .near = near.data(),
                                   .named = named,
                                   .ranked = ranked.data(),
                                   .ranks = ranks,
                                   .places = places ? places->data() : nullptr,
                                   .probes = probes,
                                   .most = most,
                                   .across = across,
                                   .there = {across ? boundary : count, across ? count - boundary : 0},
                                   .size = size,
                                   .mark = mark,
                                   .entries = entries.data()};
            new (self) BoundSearch{task, rows,   seekers,           members, std::move(runs.held),
                                   near, ranked, std::move(places), entries};
          },
          nb::arg("kernel"), nb::arg("form"), nb::arg("rows").noconvert(), nb::arg("seekers"), nb::arg("members"),
          nb::arg("packed"), nb::arg("near").noconvert(), nb::arg("ranked").noconvert(),
          nb::arg("places").noconvert().none(), nb::arg("probes"), nb::arg("most"), nb::arg("boundary"),
          nb::arg("mark"), nb::arg("entries").noconvert(), nb::keep_alive<1, 3>())  // the form
      .def(
          "run",
          [](const BoundSearch& self, std::int64_t begin, std::int64_t end) {
            check_range("blocks", begin, end, 0, self.seekers.pieces());
            Unlocked unlocked;
            search_clusters(self.task, begin, end);
          },
          nb::arg("begin"), nb::arg("end"), "Fill the entries of the rows in blocks [begin, end) of the seekers.");
}

}  // namespace tonari
