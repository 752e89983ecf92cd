#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "bind/binds.hpp"
#include "bind/bound_allowed.hpp"
#include "sparse/block.hpp"
#include "sparse/points.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Indptr = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Limits = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Left = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostEntries = std::int64_t{1} << 40;

constexpr char kSets[] = "jaccard";

Metric sparse_metric(const std::string& name) {
  if (name == kSets) return Metric::sqeuclidean;
  const Metric metric = metric_named(name);
  const bool served = is_euclidean(metric) || is_product(metric) || (is_angular(metric) && !removes_mean(metric));
  if (!served) refuse("metric " + name + ": expected cosine, inner_product, sqeuclidean, euclidean or jaccard");
  return metric;
}

// Checks that rows [begin, end) are sets: all stored values are 1.
void check_sets(const SparseRows& rows, std::int64_t begin, std::int64_t end) {
  require(!rows.wide, "sets are float32 rows of ones");
  for (std::int64_t i = rows.indptr[begin]; i < rows.indptr[end]; ++i) {
    require(rows.at(i) == 1, "sets are float32 rows of ones");
  }
}

// Checked sparse rows, together with the arrays that hold them.
struct BoundRows {
  Indptr indptr;
  Columns columns;
  Values values;
  std::int64_t d;
  SparseRows rows;

  BoundRows(Indptr of_indptr, Columns of_columns, Values of_values, std::int64_t width)
      : indptr(std::move(of_indptr)), columns(std::move(of_columns)), values(std::move(of_values)), d(width) {
    const std::int64_t n = static_cast<std::int64_t>(indptr.size()) - 1;
    require(n >= 0, "indptr is empty, expected one element more than there are rows");
    check_number("rows", n, 0, kMostRows);
    check_number("d", d, 1, kMostRows);
    check_aligned("indptr", indptr);
    check_ascending("indptr", indptr.data(), n + 1, 0, 0, kMostEntries);
    const std::int64_t entries = indptr.data()[n];
    check_shape("columns", columns, {entries});
    check_shape("values", values, {entries});
    const bool wide = is_double("values", values.dtype());
    check_numbers("columns", columns.data(), entries, 0, d);
    for (std::int64_t row = 0; row < n; ++row) {
      for (std::int64_t i = indptr.data()[row] + 1; i < indptr.data()[row + 1]; ++i) {
        if (columns.data()[i] <= columns.data()[i - 1]) {
          refuse("columns: those of row " + std::to_string(row) + " do not ascend");
        }
      }
    }
    rows = {.indptr = indptr.data(), .columns = columns.data(), .values = values.data(), .wide = wide, .n = n, .d = d};
  }
};

// Checks that the ranks of the entries in rows [begin, end) are in range.
void check_ranks(const BoundRows& bound, const Columns& ranks, std::int64_t begin, std::int64_t end, std::int64_t least,
                 std::int64_t ranked) {
  const std::int64_t* indptr = bound.rows.indptr;
  check_shape("ranks", ranks, {indptr[bound.rows.n]});
  check_numbers("ranks", ranks.data() + indptr[begin], indptr[end] - indptr[begin], least, ranked);
}

struct BoundSparsePoints {
  BoundRows& rows;
  std::int64_t ranked;
  SparsePoints points;
};

// Checks that each column has one rank, and that columns of higher rank occur in no more points.
void check_ranking(const BoundRows& bound, const std::int32_t* ranks, std::int64_t ranked) {
  std::vector<std::int32_t> column(static_cast<std::size_t>(ranked), -1);
  std::vector<std::int64_t> count(static_cast<std::size_t>(ranked));
  for (std::int64_t i = 0; i < bound.rows.indptr[bound.rows.n]; ++i) {
    const auto rank = static_cast<std::size_t>(ranks[i]);
    if (column[rank] < 0) column[rank] = bound.rows.columns[i];
    require(column[rank] == bound.rows.columns[i], "ranks: two columns have the same rank");
    ++count[rank];
  }
  for (std::size_t rank = 1; rank < count.size(); ++rank) {
    require(count[rank] <= count[rank - 1], "ranks: expected the columns of the most points first");
  }
}

struct BoundSparseBlock {
  Columns ranks;
  std::optional<Limits> limits;
  std::optional<Left> left;
  std::int64_t blocks;
  bool narrow, counted;
  SparseBlock block;
  std::int64_t scanned = 0;  // all blocks of points before this one have been scanned
  std::int64_t refined = 0;  // the candidates of all queries before this one have been refined

  BoundSparseBlock(Isa isa, const BoundSparsePoints& points, const BoundRows& queries, Columns of_ranks,
                   std::int64_t begin, std::int64_t end, std::optional<Limits> of_limits, std::optional<Left> of_left,
                   const SparseRequest& request)
      : ranks(std::move(of_ranks)),
        limits(std::move(of_limits)),
        left(std::move(of_left)),
        blocks(sparse_blocks(points.points.rows.n)),
        narrow(request.narrow),
        counted(request.counted),
        block(isa, points.points, queries.rows, ranks.data(), begin, end, request) {}

  void scan(std::int64_t begin, std::int64_t end) {
    check_range("blocks", begin, end, scanned, blocks);
    require(begin == scanned, "blocks are scanned one after another");
    for (; scanned < end; ++scanned) block.scan(scanned);
  }

  void refine(std::int64_t begin, std::int64_t end) {
    require(scanned == blocks, "not all blocks are scanned");
    check_range("queries", begin, end, refined, block.count());
    require(begin == refined, "queries are refined one after another");
    block.refine(begin, end);
    refined = end;
  }

  void check_refined() const { require(refined == block.count(), "not all queries are refined"); }

  void count(const Output<std::int64_t>& found) {
    check_refined();
    check_shape("counts", found, {block.count()});
    for (std::int64_t i = 0; i < block.count(); ++i) found.data()[i] = block.found(i);
  }

  template <class Value>
  void write(const Output<Value>& distances, const Output<std::int32_t>& indices) {
    check_refined();
    require(!counted, "points are counted, not stored");
    if (narrow != (sizeof(Value) == 4)) refuse_type("distances: expected float32 if narrow, else float64");
    std::int64_t all = 0;
    for (std::int64_t i = 0; i < block.count(); ++i) all += block.found(i);
    check_shape("distances", distances, {all});
    check_shape("indices", indices, {all});
    Unlocked unlocked;
    block.write(distances.data(), indices.data());
  }
};

}  // namespace

void bind_sparse(Module& module) {
  Class<BoundRows> rows(module, "SparseRows", "Checked sparse rows; see sparse/rows.hpp.");
  rows.def(
      "__init__",
      [](BoundRows* self, const Indptr& indptr, const Columns& columns, const Values& values, std::int64_t d) {
        new (self) BoundRows(indptr, columns, values, d);
      },
      nb::arg("indptr").noconvert(), nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("d"));
  Class<BoundSparsePoints> points(module, "SparsePoints", "Sparse points, prepared; see sparse/points.hpp.");
  points
      .def(
          "__init__",
          [](BoundSparsePoints* self, const std::string& metric, BoundRows& of, const Columns& ranks,
             std::int64_t ranked) {
            require(of.rows.n > 0, "no points");
            const Metric of_metric = sparse_metric(metric);
            check_number("ranked", ranked, 0, of.d);
            check_ranks(of, ranks, 0, of.rows.n, 0, ranked);
            check_ranking(of, ranks.data(), ranked);
            const bool sets = metric == kSets;
            if (sets) check_sets(of.rows, 0, of.rows.n);
            Unlocked unlocked;
            new (self) BoundSparsePoints{of, ranked, SparsePoints(of_metric, sets, of.rows, ranks.data(), ranked)};
          },
          nb::arg("metric"), nb::arg("rows"), nb::arg("ranks").noconvert(), nb::arg("ranked"), nb::keep_alive<1, 3>())
      .def("bytes", [](const BoundSparsePoints& self) { return self.points.bytes(); })
      .def(
          "squares",
          [](const BoundSparsePoints& self, const Output<double>& squares) {
            check_shape("squares", squares, {self.points.rows.n});
            std::copy(self.points.squares.begin(), self.points.squares.end(), squares.data());
          },
          nb::arg("squares").noconvert());
  Class<BoundSparseBlock> block(module, "SparseBlock", "A block of sparse queries; see sparse/block.hpp.");
  block
      .def(
          "__init__",
          [](BoundSparseBlock* self, const std::string& isa, const BoundSparsePoints& of, const BoundRows& queries,
             const Columns& ranks, std::int64_t begin, std::int64_t end, std::int64_t k,
             const std::optional<Limits>& limits, bool own, bool later, bool counted, const BoundAllowed* allowed,
             const std::optional<Left>& left) {
            if (queries.d != of.rows.d) {
              refuse("queries have " + std::to_string(queries.d) + " columns, expected " + std::to_string(of.rows.d));
            }
            check_range("queries", begin, end, 0, queries.rows.n);
            check_ranks(queries, ranks, begin, end, -1, of.ranked);
            const std::int64_t n = of.points.rows.n;
            if (own || later) check_number("rows", queries.rows.n, n, n);
            check_number("k", k, limits ? 0 : 1, limits ? n : n - (own ? 1 : 0));
            require(limits || !later, "later is for limits");
            require(!counted || (limits && k == 0), "counted is for limits, without k");
            check_allowed(allowed, queries.rows.n, n, std::optional<Limits>());
            require(allowed == nullptr || !own, "own: expected False with allowed, which has rules for it");
            if (of.points.sets) check_sets(queries.rows, begin, end);
            if (limits) {
              check_shape("limits", *limits, {end - begin});
              for (std::int64_t i = 0; i < end - begin; ++i) {
                require(!std::isnan(limits->data()[i]), "limits: one is not a number");
              }
            }
            const bool narrow = !queries.rows.wide && !of.rows.rows.wide;
            const SparseRequest request{.k = k,
                                        .limits = limits ? limits->data() : nullptr,
                                        .own = own,
                                        .later = later,
                                        .counted = counted,
                                        .narrow = narrow,
                                        .allowed = allowed == nullptr ? nullptr : &allowed->pairs,
                                        .left = left ? left->data() : nullptr};
            if (left) check_shape("left", *left, {n});
            new (self) BoundSparseBlock(isa_named(isa), of, queries, ranks, begin, end, limits, left, request);
          },
          nb::arg("isa"), nb::arg("points"), nb::arg("queries"), nb::arg("ranks").noconvert(), nb::arg("begin"),
          nb::arg("end"), nb::arg("k"), nb::arg("limits").noconvert().none(), nb::arg("own"), nb::arg("later"),
          nb::arg("counted"), nb::arg("allowed").none(), nb::arg("left").noconvert().none(), nb::keep_alive<1, 3>(),
          nb::keep_alive<1, 4>(), nb::keep_alive<1, 13>())
      .def_unlocked("scan", &BoundSparseBlock::scan, nb::arg("begin"), nb::arg("end"))
      .def_unlocked("refine", &BoundSparseBlock::refine, nb::arg("begin"), nb::arg("end"))
      .def("refined", [](const BoundSparseBlock& self) { return self.block.refined(); })
      .def("count", &BoundSparseBlock::count, nb::arg("counts").noconvert())
      .def("write", &BoundSparseBlock::write<float>, nb::arg("distances").noconvert(), nb::arg("indices").noconvert())
      .def("write", &BoundSparseBlock::write<double>, nb::arg("distances").noconvert(), nb::arg("indices").noconvert());
}

}  // namespace tonari
