#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "bind/binds.hpp"
#include "core/true_entries.hpp"

namespace nb = nanobind;

namespace tonari {

nb::object bits_of_bfloat16(nb::handle array) noexcept {
  try {
    const nb::object names = nb::getattr(array, "dtype").attr("names");
    if (names.equal(nb::make_tuple("bfloat16"))) return array.attr("view")("uint16");
  } catch (const nb::python_error&) {  // the object is no NumPy array, or its dtype has no name
  }
  return {};
}

namespace {

template <class... Order>
RowsView viewed(const RowsOf<Order...>& rows, const char* name) {
  const auto& array = rows.array;
  Dtype dtype;
  const nb::dlpack::dtype type = array.dtype();
  if (rows.is_bfloat16) {
    dtype = Dtype::bf16;
  } else if (type == nb::dtype<float>()) {
    dtype = Dtype::f32;
  } else if (type == nb::dtype<double>()) {
    dtype = Dtype::f64;
  } else if (type == nb::dtype<std::uint8_t>()) {
    dtype = Dtype::u8;
  } else if (type == nb::dtype<std::int8_t>()) {
    dtype = Dtype::i8;
  } else if (type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float) && type.bits == 16) {
    dtype = Dtype::f16;
  } else {
    refuse_type(std::string(name) + " are " + type_text(type) +
                ", expected float32, float16, bfloat16, float64, uint8 or int8");
  }
  check_aligned(name, array);
  if (array.shape(1) == 0) refuse(std::string(name) + " have no columns, expected at least one");
  return {array.data(), static_cast<std::int64_t>(array.shape(0)), static_cast<std::int64_t>(array.shape(1)), dtype};
}

}  // namespace

RowsView view_of(const Rows& rows, const char* name) { return viewed(rows, name); }

RowsView view_of(const SpacedRows& rows, const char* name) {
  RowsView view = viewed(rows, name);
  const std::int64_t apart = rows.array.stride(0);
  if ((view.d > 1 && rows.array.stride(1) != 1) || (view.n > 1 && apart < view.d)) {
    refuse(std::string(name) + ": expected rows one behind the other, with adjacent elements");
  }
  if (view.n > 1 && apart != view.d) view.pitch = apart * static_cast<std::int64_t>(dtype_size(view.dtype));
  return view;
}

namespace {

template <class T>
using Line = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::int64_t end_of(const RowsView& rows, std::int64_t begin, std::optional<std::int64_t> end) {
  check_range("rows", begin, end.value_or(rows.n), 0, rows.n);
  return end.value_or(rows.n);
}

void check_step(const RowsView& rows, std::int64_t step) {
  check_number("step", step, 1, std::max(rows.n, std::int64_t{1}));
}

}  // namespace

void bind_arrays(Module& module) {
  module.def(
      "first_nonfinite_row",
      [](const Rows& array, std::int64_t begin, std::optional<std::int64_t> end) {
        const RowsView rows = view_of(array, "rows");
        const std::int64_t last = end_of(rows, begin, end);
        Unlocked unlocked;
        return first_nonfinite_row(rows, begin, last);
      },
      nb::arg("rows").noconvert(), nb::arg("begin") = 0, nb::arg("end") = nb::none(),
      "First row in [begin, end) that holds NaN or infinity; -1 if there is none.");
  module.def(
      "first_negative_row",
      [](const Rows& array, std::int64_t begin, std::optional<std::int64_t> end) {
        const RowsView rows = view_of(array, "rows");
        const std::int64_t last = end_of(rows, begin, end);
        Unlocked unlocked;
        return first_negative_row(rows, begin, last);
      },
      nb::arg("rows").noconvert(), nb::arg("begin") = 0, nb::arg("end") = nb::none(),
      "First row in [begin, end) that holds a negative value; -1 if there is none.");
  module.def(
      "hash_rows",
      [](const Rows& array, std::int64_t step, const Line<std::uint64_t>& hashes) {
        const RowsView rows = view_of(array, "rows");
        check_step(rows, step);
        check_shape("hashes", hashes, {(rows.n + step - 1) / step});
        Unlocked unlocked;
        for (std::int64_t i = 0; i < rows.n; i += step) hashes.data()[i / step] = hash_row(rows, i);
      },
      nb::arg("rows").noconvert(), nb::arg("step"), nb::arg("hashes").noconvert(),
      "Writes a number of every step-th row that copies of it share, and other rows rarely do.");
  module.def(
      "mark_copies",
      [](const Rows& array, const Line<const std::uint64_t>& hashes, const RowOrder& order, std::int64_t begin,
         std::int64_t end, const Line<std::uint8_t>& copies) {
        const RowsView rows = view_of(array, "rows");
        check_shape("hashes", hashes, {rows.n});
        check_shape("order", order, {rows.n});
        check_shape("copies", copies, {rows.n});
        check_range("places", begin, end, 0, rows.n);
        const std::int64_t first = std::max(begin - 1, std::int64_t{0});
        check_numbers("order", order.data() + first, end - first, 0, rows.n);
        Unlocked unlocked;
        for (std::int64_t place = begin; place < end; ++place) {
          const std::int64_t row = order.data()[place], before = order.data()[std::max(place - 1, std::int64_t{0})];
          const bool alike = place > 0 && hashes.data()[row] == hashes.data()[before];
          copies.data()[place] = alike && same_rows(rows, row, before);
        }
      },
      nb::arg("rows").noconvert(), nb::arg("hashes").noconvert(), nb::arg("order").noconvert(), nb::arg("begin"),
      nb::arg("end"), nb::arg("copies").noconvert(),
      "Writes for places [begin, end) of an order whether the row there is a copy of the row before it, bit by bit.");
  module.def(
      "column_means",
      [](const Rows& array, std::int64_t step) {
        const RowsView rows = view_of(array, "rows");
        check_step(rows, step);
        Unlocked unlocked;
        std::vector<double> sums(static_cast<std::size_t>(rows.d), 0.0);
        add_column_sums(rows, 0, rows.n, step, sums.data());
        const std::int64_t taken = (rows.n + step - 1) / step;
        for (double& sum : sums) sum /= static_cast<double>(taken);
        return sums;
      },
      nb::arg("rows").noconvert(), nb::arg("step") = 1, "Mean of every step-th row, in float64.");
  module.def(
      "largest_magnitude",
      [](const Rows& array, const std::vector<double>& centre, std::int64_t step) {
        const RowsView rows = view_of(array, "rows");
        check_step(rows, step);
        check_columns("rows", rows, std::ssize(centre));
        Unlocked unlocked;
        return largest_magnitude(rows, step, centre.data());
      },
      nb::arg("rows").noconvert(), nb::arg("centre"), nb::arg("step") = 1,
      "Largest |x - centre| over every step-th row.");
  module.def(
      "true_entries",
      [](const Line<const std::uint8_t>& mask, const Line<std::int64_t>& places) {
        check_aligned("places", places);
        Unlocked unlocked;
        return true_entries(mask.data(), static_cast<std::int64_t>(mask.shape(0)), places.data(),
                            static_cast<std::int64_t>(places.shape(0)));
      },
      nb::arg("mask").noconvert(), nb::arg("places").noconvert(),
      "Writes the places of nonzero bytes, ascending; returns their number, or one more than there is room for.");
}

}  // namespace tonari
