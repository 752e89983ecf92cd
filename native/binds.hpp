#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "cpu.hpp"
#include "kernels.hpp"
#include "rows.hpp"

namespace tonari {

void bind_cpu(nanobind::module_& module);
void bind_arrays(nanobind::module_& module);
void bind_engine(nanobind::module_& module);
void bind_select(nanobind::module_& module);
void bind_kdtree_build(nanobind::module_& module);
void bind_kdtree_search(nanobind::module_& module);
void bind_descent(nanobind::module_& module);
void bind_descent_start(nanobind::module_& module);

// Any accepted array: two dimensions, C order, read-only allowed. Of bfloat16, which NumPy lacks, `array` has the bits.
struct Rows {
  nanobind::ndarray<nanobind::ro, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu> array;
  bool is_bfloat16 = false;
};

RowsView view_of(const Rows& array);  // throws TypeError for other element types

Metric metric_named(const std::string& name);
Isa isa_named(const std::string& name);  // throws ValueError for one that this machine cannot run
const Kernel& kernel_named(const std::string& name);

// The bits of an array that has the dtype of bfloat16 (src/tonari/arrays/bfloat16.py); nothing for any other.
nanobind::object bits_of_bfloat16(nanobind::handle array) noexcept;

}  // namespace tonari

template <>
struct nanobind::detail::type_caster<tonari::Rows> {
  using Array = make_caster<decltype(tonari::Rows::array)>;
  NB_TYPE_CASTER(tonari::Rows, Array::Name)

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    Array array;
    if (!array.from_python(source, flags, cleanup)) {
      const object bits = tonari::bits_of_bfloat16(source);
      if (!bits.is_valid() || !array.from_python(bits, flags, cleanup)) return false;
      value.is_bfloat16 = true;
    }
    value.array = std::move(array.value);
    return true;
  }
};
