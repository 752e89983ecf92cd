#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "bind/binds.hpp"
#include "kdtree/build.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

constexpr int kMostTopLevels = 8;  // a byte holds the number of a row's node
constexpr int kBoxWidth = 16;

// A TreeTop, the arrays that it reads and writes, and its finished steps. place() writes to positions that the earlier
// steps have counted, so all of them must be complete and in order.
class BoundTop {
 public:
  template <class T>
  BoundTop(const Rows& points, int levels, std::int64_t ranges, const Array<std::int32_t>& dimensions,
           const Array<T>& values)
      : points_(points), dimensions_(dimensions), values_(values), levels_(levels), ranges_(ranges) {
    const RowsView rows = view_of(points_, "points");
    n_ = rows.n;
    passes_.assign(static_cast<std::size_t>(ranges), 0);
    tallied_.assign(static_cast<std::size_t>(ranges), false);
    begin_level();
    const TreeSplits<T> splits{dimensions.data(), values.data()};
    Unlocked unlocked;
    top_ = make_tree_top<T>(rows, levels, ranges, splits);
  }

  void count(std::int64_t range) {
    check_cutting();
    check_range_number(range);
    top_->count(range);
    ++passes_[static_cast<std::size_t>(range)];
  }

  bool cut(std::int64_t node) {
    check_cutting();
    check_number("node", node, 0, std::ssize(nodes_) - 1);
    Node& state = nodes_[static_cast<std::size_t>(node)];
    require(!state.is_cut, "the node is cut already");
    const std::int64_t passes = passes_.front();
    require(passes > state.failed_after && std::count(passes_.begin(), passes_.end(), passes) == ranges_,
            "count() every range once before cut(), and again for a node whose cut() gave False");
    state.is_cut = top_->cut(node);
    if (!state.is_cut) state.failed_after = passes;
    return state.is_cut;
  }

  void descend() {
    check_cutting();
    require(std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.is_cut; }),
            "cut() every node of the level before descend()");
    top_->descend();
    ++level_;
    begin_level();
  }

  void tally(std::int64_t range) {
    require(level_ == levels_, "descend() every level before tally()");
    check_range_number(range);
    top_->tally(range);
    tallied_[static_cast<std::size_t>(range)] = true;
  }

  template <class Id>
  void place(std::int64_t range, const Array<Id>& ids) {
    check_range_number(range);
    require(std::count(tallied_.begin(), tallied_.end(), true) == ranges_, "tally() every range before place()");
    check_id_type<Id>("ids", n_);
    check_shape("ids", ids, {n_});
    Unlocked unlocked;
    top_->place(range, ids.data());
  }

 private:
  struct Node {
    bool is_cut = false;
    std::int64_t failed_after = 0;  // the number of passes before its last failed cut
  };

  void begin_level() {
    std::fill(passes_.begin(), passes_.end(), 0);
    nodes_.assign(std::size_t{1} << level_, {});
  }
  void check_cutting() const { require(level_ < levels_, "every level is cut; tally() and place() come next"); }
  void check_range_number(std::int64_t range) const { check_number("range", range, 0, ranges_ - 1); }

  Rows points_;
  nb::ndarray<nb::c_contig, nb::device::cpu> dimensions_, values_;
  int levels_, level_ = 0;
  std::int64_t n_ = 0, ranges_;
  std::vector<std::int64_t> passes_;  // number of passes over each range at this level
  std::vector<Node> nodes_;           // the nodes of this level
  std::vector<char> tallied_;         // for each range; not bool: several threads set elements at once
  std::unique_ptr<TreeTop> top_;
};

template <class T>
void check_points(const RowsView& points) {
  if (points.dtype == Dtype::f64 && !std::is_same_v<T, double>) {
    refuse_type("values are float32, expected float64 for points in float64");
  }
}

template <class T>
std::unique_ptr<BoundTop> tree_top(const Rows& points, int levels, std::int64_t ranges,
                                   const Array<std::int32_t>& dimensions, const Array<T>& values) {
  const RowsView rows = view_of(points, "points");
  check_points<T>(rows);
  check_number("levels", levels, 0, kMostTopLevels);
  check_number("ranges", ranges, 1, std::max(rows.n, std::int64_t{1}));
  if (rows.n >> levels < 1) refuse("points: a node of the last level would have none");
  const std::int64_t splits = static_cast<std::int64_t>(dimensions.size());  // number of splits in the whole tree
  check_shape("dimensions", dimensions, {splits});
  check_shape("values", values, {splits});
  check_at_least("length of the dimensions", splits, (std::int64_t{1} << levels) - 1);
  return std::make_unique<BoundTop>(points, levels, ranges, dimensions, values);
}

template <class T, class Id>
void below(const Rows& points, int level, std::int64_t index, const Array<Id>& ids,
           const Array<std::int32_t>& dimensions, const Array<T>& values, const Array<T>& blocks, const Array<T>& boxes,
           int height) {
  const RowsView rows = view_of(points, "points");
  check_points<T>(rows);
  check_number("height", height, 0, 31);
  const std::int64_t leaves = std::int64_t{1} << height;
  if (rows.n < leaves) refuse("height=" + std::to_string(height) + ": expected a point or more in each leaf");
  check_number("level", level, 0, height);
  check_number("index", index, 0, (std::int64_t{1} << level) - 1);
  check_id_type<Id>("ids", rows.n);
  check_shape("ids", ids, {rows.n});
  check_shape("dimensions", dimensions, {leaves - 1});
  check_shape("values", values, {leaves - 1});
  require(blocks.ndim() == 3, "blocks: expected shape (leaves, d, capacity)");
  const auto capacity = static_cast<std::int64_t>(blocks.shape(2));
  check_shape("blocks", blocks, {leaves, rows.d, capacity});
  check_at_least("capacity of the blocks", capacity, (rows.n + leaves - 1) / leaves);
  check_shape("boxes", boxes, {(leaves + kBoxWidth - 1) / kBoxWidth, rows.d, 2, kBoxWidth});
  const TreeParts<T> parts{.height = height,
                           .capacity = capacity,
                           .splits = {dimensions.data(), values.data()},
                           .rows = blocks.data(),
                           .boxes = boxes.data()};
  Unlocked unlocked;
  const std::int64_t begin = node_begin(rows.n, level, index), end = node_begin(rows.n, level, index + 1);
  check_numbers("ids of the node", ids.data() + begin, end - begin, 0, rows.n);
  tree_below(rows, level, index, ids.data(), parts);
}

template <class T>
void bind_type(Module& module) {
  module.def("tree_top", tree_top<T>, nb::arg("points").noconvert(), nb::arg("levels"), nb::arg("ranges"),
             nb::arg("dimensions").noconvert(), nb::arg("values").noconvert(),
             "The first levels of a tree; see TreeTop.");
  const auto bind_below = [&](auto function) {
    module.def("tree_below", function, nb::arg("points").noconvert(), nb::arg("level"), nb::arg("index"),
               nb::arg("ids").noconvert(), nb::arg("dimensions").noconvert(), nb::arg("values").noconvert(),
               nb::arg("blocks").noconvert(), nb::arg("boxes").noconvert(), nb::arg("height"),
               "Cuts node `index` of `level`, whose rows `ids` has at its places, down to its leaves.");
  };
  bind_below(below<T, std::int32_t>);
  bind_below(below<T, std::int64_t>);
}

}  // namespace

void bind_kdtree_build(Module& module) {
  Class<BoundTop>(module, "TreeTop", "The first levels of a tree, by passes over ranges; see kdtree/build.hpp.")
      .def_unlocked("count", &BoundTop::count, nb::arg("range"))
      .def_unlocked("cut", &BoundTop::cut, nb::arg("node"))
      .def("descend", &BoundTop::descend)
      .def_unlocked("tally", &BoundTop::tally, nb::arg("range"))
      .def("place", &BoundTop::place<std::int32_t>, nb::arg("range"), nb::arg("ids").noconvert())
      .def("place", &BoundTop::place<std::int64_t>, nb::arg("range"), nb::arg("ids").noconvert());
  bind_type<float>(module);
  bind_type<double>(module);
}

}  // namespace tonari
