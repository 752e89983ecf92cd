#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <string>
#include <utility>

#include "bind/checks.hpp"
#include "bind/unlocked.hpp"
#include "core/cpu.hpp"
#include "core/default_floats.hpp"
#include "core/metrics.hpp"
#include "core/rows.hpp"
#include "exact/kernels.hpp"
#include "exact/look.hpp"
#include "exact/pack.hpp"

namespace tonari {

// Wrappers of the nanobind module and its classes. Everything is bound through them, so that every call, even of a
// function that is added later, runs in the default floating-point environment.
class Module {
 public:
  explicit Module(nanobind::module_ module) : module_(std::move(module)) {}

  template <class Function, class... Extra>
  Module& def(const char* name, Function&& function, const Extra&... extra) {
    module_.def(name, std::forward<Function>(function), nanobind::call_guard<DefaultFloats>(), extra...);
    return *this;
  }

 private:
  template <class T>
  friend class Class;

  nanobind::module_ module_;
};

template <class T>
class Class {
 public:
  Class(Module& module, const char* name, const char* doc) : class_(module.module_, name, doc) {}

  template <class Function, class... Extra>
  Class& def(const char* name, Function&& function, const Extra&... extra) {
    class_.def(name, std::forward<Function>(function), nanobind::call_guard<DefaultFloats>(), extra...);
    return *this;
  }
  // Binds a constructor.
  template <class... Args, class... Extra>
  Class& def(nanobind::init<Args...> init, const Extra&... extra) {
    class_.def(std::move(init), nanobind::call_guard<DefaultFloats>(), extra...);
    return *this;
  }
  // Binds a function that runs without the interpreter's lock; its converted arguments do not need the lock either.
  template <class Function, class... Extra>
  Class& def_unlocked(const char* name, Function&& function, const Extra&... extra) {
    class_.def(name, std::forward<Function>(function), nanobind::call_guard<DefaultFloats, Unlocked>(), extra...);
    return *this;
  }
  // Binds a read-only constant.
  template <class Getter>
  Class& def_prop_ro(const char* name, Getter&& getter) {
    class_.def_prop_ro(name, std::forward<Getter>(getter));
    return *this;
  }
  template <class Member>
  Class& def_ro(const char* name, Member T::* member) {
    class_.def_ro(name, member);
    return *this;
  }

 private:
  nanobind::class_<T> class_;
};

void bind_cpu(Module& module);
void bind_allowed(Module& module);
void bind_arrays(Module& module);
void bind_bits(Module& module);
void bind_boxes(Module& module);
void bind_direct(Module& module);
void bind_engine(Module& module);
void bind_radius(Module& module);
void bind_select(Module& module);
void bind_lists(Module& module);
void bind_kdtree_build(Module& module);
void bind_kdtree_search(Module& module);
void bind_kdtree_radius(Module& module);
void bind_missing(Module& module);
void bind_sparse(Module& module);
void bind_spanning(Module& module);
void bind_descent(Module& module);
void bind_descent_start(Module& module);

// A two-dimensional array of rows, possibly read-only. For bfloat16, which NumPy lacks, `array` has the bits.
template <class... Order>
struct RowsOf {
  nanobind::ndarray<nanobind::ro, nanobind::ndim<2>, Order..., nanobind::device::cpu> array;
  bool is_bfloat16 = false;
};
using Rows = RowsOf<nanobind::c_contig>;
// The same, but rows may have gaps between them, such as those of a mapped .fvecs file.
using SpacedRows = RowsOf<>;

// Throws TypeError for other element types, and ValueError for rows without columns, or for spaced rows that overlap or
// whose elements are not adjacent. `name` appears in messages.
RowsView view_of(const Rows& rows, const char* name);
RowsView view_of(const SpacedRows& rows, const char* name);

// A packed run of points, with the forms that it was packed in, which it keeps alive.
struct BoundPoints {
  PackedPoints packed;
  const Form* form;
  const Form* look;  // the form of the look, or null without a look
  Errors errors;
};

// Checks that the run was packed for the kernel and in this very form, with measured errors if they are needed.
void check_packed(const BoundPoints& points, const Kernel& kernel, const Form& form, Errors needed);
// Checks the form of a search's look at contracted rows; null if the search has no look.
void check_look(const Form* look, const Form& form);
// Checks that the search has a look, and that the run was packed for it.
void check_looked(const BoundPoints& run, const Form* look);
// Three counts of pairs of a query tile and a point group: all, those that were looked at, and those that were marked.
nanobind::tuple counts(const Looked& looked);
// The row number of the point at each place.
using RowOrder = nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
RowsView ordered(RowsView points, const std::optional<RowOrder>& order, bool checks = true);
// Checks that the kernel computes the form's metric and that the rows are as wide as the form.
void check_form(const Form& form, const Kernel& kernel, const char* name, const RowsView& rows);

Metric metric_named(const std::string& name);
Isa isa_named(const std::string& name);  // throws ValueError for an unknown set, or one that this machine lacks
const Kernel& kernel_named(const std::string& name);

// The bits of an array whose dtype is bfloat16 (src/tonari/inputs/bfloat16.py); nothing for any other array.
nanobind::object bits_of_bfloat16(nanobind::handle array) noexcept;

}  // namespace tonari

template <class... Order>
struct nanobind::detail::type_caster<tonari::RowsOf<Order...>> {
  using Array = make_caster<decltype(tonari::RowsOf<Order...>::array)>;
  NB_TYPE_CASTER(tonari::RowsOf<Order...>, Array::Name)

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
