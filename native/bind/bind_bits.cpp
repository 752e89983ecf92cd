#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "bind/binds.hpp"
#include "bits/block.hpp"
#include "bits/listed.hpp"
#include "bits/pack.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<const std::uint32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using BitCounts = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Limits = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T, int RANK = 1>
using Output = nb::ndarray<T, nb::ndim<RANK>, nb::c_contig, nb::device::cpu>;

// Checks rows of bits, and returns the number of bytes in a row.
std::int64_t bytes_of(const char* name, const Bytes& rows) {
  const auto bytes = static_cast<std::int64_t>(rows.shape(1));
  require(rows.shape(0) > 0, "no rows of bits");
  check_number(name, bytes, 1, kMostBits / 8);
  return bytes;
}

bool is_jaccard(const std::string& metric) {
  if (metric != "hamming" && metric != "jaccard") refuse("metric " + metric + ": expected hamming or jaccard");
  return metric == "jaccard";
}

// A block, together with the arrays that it reads: packed points, or rows that each scan packs.
struct BoundBits {
  std::optional<Words> words;
  std::optional<BitCounts> counts;
  std::optional<Bytes> rows;
  std::optional<Ids> self_ids;
  std::int64_t n, groups, k;
  bool nearest, lists;
  BitBlock block;
  std::int64_t scanned = 0;  // all groups of points before this one have been scanned

  BoundBits(Isa isa, bool jaccard, const Bytes& queries, std::optional<Words> of_points,
            std::optional<BitCounts> of_counts, std::optional<Bytes> of_rows, std::int64_t points, std::int64_t wanted,
            const std::optional<Limits>& limits, std::optional<Ids> own, bool listed)
      : words(std::move(of_points)),
        counts(std::move(of_counts)),
        rows(std::move(of_rows)),
        self_ids(std::move(own)),
        n(points),
        groups(bit_groups(points)),
        k(wanted),
        nearest(!limits),
        lists(listed),
        block(isa, jaccard,
              {.words = words ? words->data() : nullptr,
               .counts = counts ? counts->data() : nullptr,
               .rows = rows ? rows->data() : nullptr,
               .n = points},
              queries.data(), static_cast<std::int64_t>(queries.shape(0)), static_cast<std::int64_t>(queries.shape(1)),
              wanted, limits ? limits->data() : nullptr, self_ids ? self_ids->data() : nullptr, listed) {}

  const void* address() const { return words ? static_cast<const void*>(words->data()) : rows->data(); }

  void scan(std::int64_t begin, std::int64_t end) {
    check_range("groups", begin, end, scanned, groups);
    block.scan(begin, end);
    scanned = end;
  }

  void absorb(BoundBits& other) {
    require(&other != this, "a block cannot absorb itself");
    require(other.address() == address() && other.n == n && other.k == k && other.nearest == nearest &&
                other.lists == lists && other.block.count() == block.count(),
            "blocks differ in their points, k or queries: expected the same search");
    block.absorb(other.block);
  }

  void count(const Output<std::int64_t>& found) {
    check_shape("counts", found, {block.count()});
    for (std::int64_t i = 0; i < block.count(); ++i) found.data()[i] = block.found(i);
  }

  template <class Index>
  void write(const Output<float>& distances, const Output<Index>& indices) {
    require(lists, "the block only counts; expected lists=True");
    check_id_type<Index>("indices", n);
    std::int64_t all = 0;
    for (std::int64_t i = 0; i < block.count(); ++i) {
      if (nearest && block.found(i) < k) refuse("a query has met fewer than k points: scan all groups first");
      all += block.found(i);
    }
    check_shape("distances", distances, {all});
    check_shape("indices", indices, {all});
    Unlocked unlocked;
    block.write(distances.data(), indices.data());
  }
};

template <class Index>
void bind_listed(Module& module) {
  module.def(
      "search_listed_bits",
      [](const std::string& metric, const std::string& isa, const Bytes& queries, const Bytes& points, std::int64_t k,
         const std::optional<Ids>& self_ids, const Ids& listed, const Ids& begins, const Ids& ends,
         const Output<float, 2>& distances, const Output<Index, 2>& indices) {
        const std::int64_t bytes = bytes_of("bytes of a query", queries);
        const auto m = static_cast<std::int64_t>(queries.shape(0)), n = static_cast<std::int64_t>(points.shape(0));
        check_shape("points", points, {n, bytes});
        check_number("points", n, 1, (std::int64_t{1} << kBitIdBits) - 1);
        check_at_least("k", k, 1);
        check_shape("begins", begins, {m});
        check_shape("ends", ends, {m});
        if (self_ids) check_shape("self_ids", *self_ids, {m});
        check_aligned("listed", listed);
        const auto count = static_cast<std::int64_t>(listed.size());
        std::int64_t low = count, high = 0;  // the range of `listed` that the queries' lists cover
        for (std::int64_t i = 0; i < m; ++i) {
          check_range("listed", begins.data()[i], ends.data()[i], 0, count);
          low = std::min(low, begins.data()[i]);
          high = std::max(high, ends.data()[i]);
        }
        if (low < high) check_numbers("listed", listed.data() + low, high - low, 0, n);
        check_id_type<Index>("indices", n);
        check_shape("distances", distances, {m, k});
        check_shape("indices", indices, {m, k});
        const Isa level = isa_named(isa);
        const BitLists lists{.jaccard = is_jaccard(metric),
                             .queries = queries.data(),
                             .points = points.data(),
                             .bytes = bytes,
                             .k = k,
                             .self_ids = self_ids ? self_ids->data() : nullptr,
                             .listed = listed.data(),
                             .begins = begins.data(),
                             .ends = ends.data()};
        Unlocked unlocked;
        search_listed_bits(level, lists, 0, m, distances.data(), indices.data());
      },
      nb::arg("metric"), nb::arg("isa"), nb::arg("queries").noconvert(), nb::arg("points").noconvert(), nb::arg("k"),
      nb::arg("self_ids").noconvert().none(), nb::arg("listed").noconvert(), nb::arg("begins").noconvert(),
      nb::arg("ends").noconvert(), nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
      "The k nearest of the points that are listed for every query, among rows of bits; see bits/listed.hpp.");
}

}  // namespace

void bind_bits(Module& module) {
  bind_listed<std::int32_t>(module);
  bind_listed<std::int64_t>(module);
  module.def(
      "pack_bits",
      [](const Bytes& rows, const Output<std::uint32_t, 3>& words, const Output<std::int32_t, 2>& counts) {
        const std::int64_t bytes = bytes_of("bytes of a row", rows), n = static_cast<std::int64_t>(rows.shape(0));
        check_shape("words", words, {bit_groups(n), bit_words(bytes), kBitLanes});
        check_shape("counts", counts, {bit_groups(n), kBitLanes});
        Unlocked unlocked;
        pack_bits(rows.data(), n, bytes, words.data(), counts.data());
      },
      nb::arg("rows").noconvert(), nb::arg("words").noconvert(), nb::arg("counts").noconvert(),
      "Rows of bits in groups of 16, word by word; see bits/pack.hpp.");
  Class<BoundBits> block(module, "BitBlock", "A block of queries among rows of bits; see bits/block.hpp.");
  block
      .def(
          "__init__",
          [](BoundBits* self, const std::string& isa, const std::string& metric, const Bytes& queries,
             const std::optional<Words>& words, const std::optional<BitCounts>& counts,
             const std::optional<Bytes>& rows, std::int64_t n, std::int64_t k, const std::optional<Limits>& limits,
             const std::optional<Ids>& self_ids, bool lists) {
            const std::int64_t bytes = bytes_of("bytes of a query", queries);
            const auto count = static_cast<std::int64_t>(queries.shape(0));
            check_number("n", n, 1, (std::int64_t{1} << kBitIdBits) - 1);
            require(words.has_value() == counts.has_value() && words.has_value() != rows.has_value(),
                    "points: expected words and counts, or rows");
            if (rows) {
              check_shape("rows", *rows, {n, bytes});
            } else {
              check_shape("words", *words, {bit_groups(n), bit_words(bytes), kBitLanes});
              check_shape("counts", *counts, {bit_groups(n), kBitLanes});
            }
            check_number("k", k, 1, n - (self_ids ? 1 : 0) + (limits ? 1 : 0));
            if (self_ids) check_shape("self_ids", *self_ids, {count});
            if (limits) {
              check_shape("limits", *limits, {count});
              for (std::int64_t i = 0; i < count; ++i) {
                require(!std::isnan(limits->data()[i]), "limits: one is not a number");
              }
            }
            require(limits || lists, "lists=False is for limits, which count");
            new (self) BoundBits(isa_named(isa), is_jaccard(metric), queries, words, counts, rows, n, k, limits,
                                 self_ids, lists);
          },
          nb::arg("isa"), nb::arg("metric"), nb::arg("queries").noconvert(), nb::arg("words").noconvert().none(),
          nb::arg("counts").noconvert().none(), nb::arg("rows").noconvert().none(), nb::arg("n"), nb::arg("k"),
          nb::arg("limits").noconvert().none(), nb::arg("self_ids").noconvert().none(), nb::arg("lists"))
      .def_unlocked("scan", &BoundBits::scan, nb::arg("begin"), nb::arg("end"))
      .def_unlocked("absorb", &BoundBits::absorb, nb::arg("other"))
      .def("count", &BoundBits::count, nb::arg("counts").noconvert())
      .def("write", &BoundBits::write<std::int32_t>, nb::arg("distances").noconvert(), nb::arg("indices").noconvert())
      .def("write", &BoundBits::write<std::int64_t>, nb::arg("distances").noconvert(), nb::arg("indices").noconvert());
}

}  // namespace tonari
