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

// Any accepted array: two dimensions, C order, read-only allowed.
using Rows = nanobind::ndarray<nanobind::ro, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

RowsView view_of(const Rows& array);  // throws TypeError for other element types

Metric metric_named(const std::string& name);
Isa isa_named(const std::string& name);  // throws ValueError for one that this machine cannot run
const Kernel& kernel_named(const std::string& name);

}  // namespace tonari
