// tonari._native: the compiled core, private to the package. One bind_<group>.cpp per group of functions.
#include <nanobind/nanobind.h>

#include "binds.hpp"

NB_MODULE(_native, module) {
  module.doc() = "Compiled kernels of tonari. Single-threaded, without the GIL, on array slices.";
  tonari::bind_cpu(module);
  tonari::bind_arrays(module);
  tonari::bind_engine(module);
  tonari::bind_select(module);
  tonari::bind_kdtree_build(module);
  tonari::bind_kdtree_search(module);
  tonari::bind_descent(module);
  tonari::bind_descent_start(module);
}
