#include <nanobind/stl/unique_ptr.h>

#include "bind/binds.hpp"
#include "kdtree/build.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <class T>
std::unique_ptr<TreeTop> tree_top(const Rows& points, int levels, std::int64_t ranges,
                                  const Array<std::int32_t>& dimensions, const Array<T>& values) {
  const RowsView rows = view_of(points);
  Unlocked unlocked;
  return make_tree_top<T>(rows, levels, ranges, {dimensions.data(), values.data()});
}

template <class Id>
void place(TreeTop& top, std::int64_t range, const Array<Id>& ids) {
  Unlocked unlocked;
  top.place(range, ids.data());
}

template <class T, class Id>
void below(const Rows& points, int level, std::int64_t index, const Array<Id>& ids,
           const Array<std::int32_t>& dimensions, const Array<T>& values, const Array<T>& blocks,
           const Array<T>& boxes, int height) {
  const RowsView rows = view_of(points);
  const TreeParts<T> parts{.height = height,
                           .capacity = static_cast<std::int64_t>(blocks.shape(2)),
                           .splits = {dimensions.data(), values.data()},
                           .rows = blocks.data(),
                           .boxes = boxes.data()};
  Unlocked unlocked;
  tree_below(rows, level, index, ids.data(), parts);
}

template <class T>
void bind_type(Module& module) {
  module.def("tree_top", tree_top<T>, nb::arg("points"), nb::arg("levels"), nb::arg("ranges"),
             nb::arg("dimensions").noconvert(), nb::arg("values").noconvert(),
             // The top reads and writes these as long as it lives.
             nb::keep_alive<0, 1>(), nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>(),
             "The first levels of a tree; see TreeTop.");
  const auto bind_below = [&](auto function) {
    module.def("tree_below", function, nb::arg("points"), nb::arg("level"), nb::arg("index"),
               nb::arg("ids").noconvert(), nb::arg("dimensions").noconvert(), nb::arg("values").noconvert(),
               nb::arg("blocks").noconvert(), nb::arg("boxes").noconvert(), nb::arg("height"),
               "Cuts node `index` of `level`, whose rows `ids` has at its places, down to its leaves.");
  };
  bind_below(below<T, std::int32_t>);
  bind_below(below<T, std::int64_t>);
}

}  // namespace

void bind_kdtree_build(Module& module) {
  Class<TreeTop>(module, "TreeTop", "The first levels of a tree, by passes over ranges; see kdtree/build.hpp.")
      .def_unlocked("count", &TreeTop::count, nb::arg("range"))
      .def_unlocked("cut", &TreeTop::cut, nb::arg("node"))
      .def("descend", &TreeTop::descend)
      .def_unlocked("tally", &TreeTop::tally, nb::arg("range"))
      .def("place", place<std::int32_t>, nb::arg("range"), nb::arg("ids").noconvert())
      .def("place", place<std::int64_t>, nb::arg("range"), nb::arg("ids").noconvert());
  bind_type<float>(module);
  bind_type<double>(module);
}

}  // namespace tonari
