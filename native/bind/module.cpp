// tonari.core._native: the compiled core, private to the package. Each bind_<group>.cpp binds a group of functions.
#include <nanobind/nanobind.h>

#include <optional>

#include "bind/binds.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

// The default environment for arithmetic in Python; Module sets it for calls of native functions. Bound without
// Module, whose guard would undo what __enter__ sets.
struct BoundFloats {
  std::optional<DefaultFloats> floats;
};

void bind_floats(nb::module_& module) {
  nb::class_<BoundFloats>(module, "DefaultFloats", "A context: the default floating-point environment on this thread.")
      .def(nb::init<>())
      .def("__enter__", [](BoundFloats& self) { self.floats.emplace(); })
      .def("__exit__", [](BoundFloats& self, const nb::args&) { self.floats.reset(); });
  module.def(
      "has_default_floats", [] { return FloatControl::current().is_usual(); },
      "Whether this thread is in the default floating-point environment.");
}

}  // namespace
}  // namespace tonari

NB_MODULE(_native, given) {
  given.doc() = "Compiled kernels of tonari. Single-threaded, without the GIL, on array slices.";
  tonari::bind_floats(given);
  given.def(
      "set_leak_warnings", [](bool wanted) { nb::set_leak_warnings(wanted); }, nb::arg("wanted"),
      "Whether what is left of this module at the interpreter's end is reported.");
  tonari::Module module(given);
  tonari::bind_cpu(module);
  tonari::bind_allowed(module);
  tonari::bind_arrays(module);
  tonari::bind_bits(module);
  tonari::bind_boxes(module);
  tonari::bind_direct(module);
  tonari::bind_engine(module);
  tonari::bind_radius(module);
  tonari::bind_select(module);
  tonari::bind_lists(module);
  tonari::bind_kdtree_build(module);
  tonari::bind_kdtree_search(module);
  tonari::bind_kdtree_radius(module);
  tonari::bind_missing(module);
  tonari::bind_sparse(module);
  tonari::bind_spanning(module);
  tonari::bind_descent(module);
  tonari::bind_descent_start(module);
}
