#include <string>
#include <vector>

#include "bind/binds.hpp"
#include "select/merge_lists.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using RowNumbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Value, class Id>
void merge_into(const Matrix<Value>& distances, const Matrix<Id>& indices, const RowNumbers& rows,
                const Matrix<const Value>& other_distances, const Matrix<const Id>& other_indices, bool descending) {
  const auto n = static_cast<std::int64_t>(distances.shape(0));
  const auto k = static_cast<std::int64_t>(distances.shape(1));
  const auto count = static_cast<std::int64_t>(rows.shape(0));
  const auto width = static_cast<std::int64_t>(other_distances.shape(1));
  check_shape("distances", distances, {n, k});
  check_shape("indices", indices, {n, k});
  check_shape("rows", rows, {count});
  check_shape("other_distances", other_distances, {count, width});
  check_shape("other_indices", other_indices, {count, width});
  for (std::int64_t i = 0; i < count; ++i) check_number("rows", rows.data()[i], 0, n - 1);
  Unlocked unlocked;
  std::vector<Value> room_values;
  std::vector<Id> room_ids;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rows.data()[i];
    merge_list<Value, Id>({distances.data() + row * k, indices.data() + row * k, k},
                          {other_distances.data() + i * width, other_indices.data() + i * width, width}, descending,
                          room_values, room_ids);
  }
}

template <class Value, class Id>
void def_merge(Module& module) {
  module.def("merge_into", &merge_into<Value, Id>, nb::arg("distances").noconvert(), nb::arg("indices").noconvert(),
             nb::arg("rows").noconvert(), nb::arg("other_distances").noconvert(), nb::arg("other_indices").noconvert(),
             nb::arg("descending"),
             "Merges list i of the others, in order, into list rows[i]; a point that both have is kept once.");
}

}  // namespace

void bind_lists(Module& module) {
  def_merge<float, std::int32_t>(module);
  def_merge<float, std::int64_t>(module);
  def_merge<double, std::int32_t>(module);
  def_merge<double, std::int64_t>(module);
}

}  // namespace tonari
