#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <optional>
#include <utility>

#include "bind/binds.hpp"
#include "select/selects.hpp"

namespace nb = nanobind;

namespace tonari {
namespace {

using Values = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using Lengths = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutValues = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutIndices = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Named, std::size_t COUNT>
Named named(const char* what, const std::string& name, const std::pair<const char*, Named> (&names)[COUNT]) {
  for (const auto& [known, value] : names) {
    if (name == known) return value;
  }
  refuse("unknown " + std::string(what) + " " + name);
}

SelectMethod method_named(const std::string& name) {
  return named<SelectMethod>("method", name,
                             {{"insertion", SelectMethod::insertion},
                              {"heap", SelectMethod::heap},
                              {"merge_queue", SelectMethod::merge_queue},
                              {"hierarchical", SelectMethod::hierarchical},
                              {"quick", SelectMethod::quick},
                              {"bitonic", SelectMethod::bitonic},
                              {"threshold", SelectMethod::threshold},
                              {"radix", SelectMethod::radix}});
}

ValueType value_type_named(const std::string& name) {
  return named<ValueType>("type of values", name,
                          {{"float32", ValueType::f32},
                           {"float16", ValueType::f16},
                           {"bfloat16", ValueType::bf16},
                           {"float64", ValueType::f64},
                           {"int32", ValueType::i32},
                           {"uint8", ValueType::u8}});
}

Buffering buffering_named(const std::string& name) {
  return named<Buffering>(
      "buffer", name,
      {{"none", Buffering::none}, {"own", Buffering::own}, {"full", Buffering::full}, {"sorted", Buffering::sorted}});
}

SelectOptions options_from(const nb::dict& given) {
  SelectOptions options;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == "buffer") {
      options.buffer = buffering_named(nb::cast<std::string>(value));
    } else if (name == "aligned") {
      options.aligned = nb::cast<bool>(value);
    } else if (name == "heap") {
      options.heap = nb::cast<bool>(value);
    } else {
      std::int64_t SelectOptions::* number =
          named<std::int64_t SelectOptions::*>("option", name,
                                               {{"buffer_size", &SelectOptions::buffer_size},
                                                {"group", &SelectOptions::group},
                                                {"levels", &SelectOptions::levels},
                                                {"m", &SelectOptions::m},
                                                {"samples", &SelectOptions::samples},
                                                {"batch", &SelectOptions::batch},
                                                {"bits", &SelectOptions::bits}});
      options.*number = nb::cast<std::int64_t>(value);
    }
  }
  return options;
}

constexpr std::int64_t kMostValues = std::int64_t{1} << 31;  // most values in a row, and largest value of any option

// Refuses options with which a method would not end, or would need too much memory.
void check_options(const SelectOptions& options) {
  check_at_least("buffer_size", options.buffer_size, 1);
  if (options.group != 0) check_number("group", options.group, 2, kMostValues);
  check_at_least("levels", options.levels, 0);
  check_number("m", options.m, 1, kMostValues);
  if (!std::has_single_bit(static_cast<std::uint64_t>(options.m))) {
    refuse("m=" + std::to_string(options.m) + ": expected a power of two");
  }
  check_at_least("samples", options.samples, 0);
  check_number("batch", options.batch, 1, kMostValues);
  check_number("bits", options.bits, 1, 11);
}

std::int64_t select(const std::string& isa, const std::string& method, const Values& values,
                    const std::string& value_type, std::int64_t begin, std::int64_t end, std::int64_t k,
                    const std::optional<Lengths>& lengths, bool largest, bool sorted, const nb::dict& options,
                    const OutValues& out_values, const OutIndices& out_indices, SelectCounters* counters) {
  const ValueType type = value_type_named(value_type);
  const auto rows = static_cast<std::int64_t>(values.shape(0)), n = static_cast<std::int64_t>(values.shape(1));
  const int bits = 8 * value_bytes(type);
  require(values.dtype().bits == bits && out_values.dtype().bits == bits, "values are not of the type that was named");
  require(rows == 0 || n <= 1 || values.stride(1) == 1, "columns are not contiguous");
  check_aligned("values", values);
  check_range("rows", begin, end, 0, rows);
  check_number("n", n, 1, kMostValues - 1);
  check_number("k", k, 1, n);
  if (lengths) {
    check_shape("lengths", *lengths, {rows});
    check_numbers("lengths", lengths->data() + begin, end - begin, 0, n + 1);
  }
  check_shape("out_values", out_values, {rows, k});
  check_shape("out_indices", out_indices, {rows, k});
  const SelectOptions chosen = options_from(options);
  check_options(chosen);
  const SelectTask task{.values = values.data(),
                        .stride = values.stride(0),
                        .type = type,
                        .n = n,
                        .lengths = lengths ? lengths->data() : nullptr,
                        .k = k,
                        .largest = largest,
                        .sorted = sorted,
                        .options = chosen,
                        .out_values = out_values.data(),
                        .out_indices = out_indices.data(),
                        .counters = counters};
  const SelectRows rows_of = select_rows(isa_named(isa), method_named(method), type, counters != nullptr);
  Unlocked unlocked;
  return rows_of(task, begin, end);
}

}  // namespace

void bind_select(Module& module) {
  Class<SelectCounters>(module, "SelectCounters", "What a selection did; see select/task.hpp.")
      .def(nb::init<>())
      .def_ro("updates", &SelectCounters::updates)
      .def_ro("merges", &SelectCounters::merges)
      .def_ro("flushes", &SelectCounters::flushes)
      .def_ro("examined", &SelectCounters::examined)
      .def_ro("lanes", &SelectCounters::lanes)
      .def_ro("compression", &SelectCounters::compression)
      .def_ro("batches", &SelectCounters::batches)
      .def_ro("threshold_ratio", &SelectCounters::threshold_ratio)
      .def_ro("rows", &SelectCounters::rows);

  module.def("select_rows", &select, nb::arg("isa"), nb::arg("method"), nb::arg("values").noconvert(),
             nb::arg("value_type"), nb::arg("begin"), nb::arg("end"), nb::arg("k"), nb::kw_only(),
             nb::arg("lengths").noconvert().none(), nb::arg("largest"), nb::arg("sorted"), nb::arg("options"),
             nb::arg("out_values").noconvert(), nb::arg("out_indices").noconvert(), nb::arg("counters").none(),
             "Answers rows [begin, end) into the outputs; the first of them that holds NaN, or -1.");
}

}  // namespace tonari
