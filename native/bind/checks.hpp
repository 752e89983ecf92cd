// The checks that every binding makes before a kernel reads or writes through its arguments.
//
// An nb::ndarray type fixes an array's element type, rank, order and device, and its argument is noconvert(): nanobind
// refuses any other array with a TypeError. Otherwise nanobind would make a copy, which would cost time and memory, and
// would lose everything that a kernel writes. Shapes, and all numbers that say where a kernel reads or writes,
// are checked here, before anything is written. Numbers inside arrays (ids, begins, counts) are checked if a kernel
// uses them as addresses: one pass over them takes little time compared with such a call. Values of rows are not
// checked here: src/tonari/inputs checks once that they are finite.
//
// Objects hold the nb::ndarrays that they read, so that the memory lives as long as they do. keep_alive is for
// instances of the classes that are bound here, which nanobind never converts. An array must not change while a kernel
// reads it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>

#include "core/common.hpp"

namespace tonari {

[[noreturn]] inline void refuse(const std::string& message) { throw nanobind::value_error(message.c_str()); }
[[noreturn]] inline void refuse_type(const std::string& message) { throw nanobind::type_error(message.c_str()); }

inline void require(bool holds, const char* what) {
  if (!holds) refuse(what);
}

// Checks that a number is in [low, high].
inline void check_number(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (low <= value && value <= high) return;
  refuse(std::string(name) + "=" + std::to_string(value) + ": expected " + std::to_string(low) +
         (low == high ? "" : " to " + std::to_string(high)));
}

inline void check_at_least(const char* name, std::int64_t value, std::int64_t low) {
  if (value >= low) return;
  refuse(std::string(name) + "=" + std::to_string(value) + ": expected at least " + std::to_string(low));
}

// Checks that [begin, end) is a range within [low, high).
inline void check_range(const char* items, std::int64_t begin, std::int64_t end, std::int64_t low, std::int64_t high) {
  if (low <= begin && begin <= end && end <= high) return;
  refuse(std::string(items) + " [" + std::to_string(begin) + ", " + std::to_string(end) + "): expected " +
         std::to_string(low) + " <= begin <= end <= " + std::to_string(high));
}

inline std::string shape_text(std::int64_t rank, const std::int64_t* shape) {
  std::string text = "(";
  for (std::int64_t axis = 0; axis < rank; ++axis) text += (axis > 0 ? ", " : "") + std::to_string(shape[axis]);
  return text + (rank == 1 ? ",)" : ")");
}

// Checks that elements are aligned as their type requires, on which kernels and compilers rely.
template <class Array>
void check_aligned(const char* name, const Array& array) {
  // An array without elements counts as aligned, as in NumPy.
  if (array.size() == 0 || reinterpret_cast<std::uintptr_t>(array.data()) % array.itemsize() == 0) return;
  refuse(std::string(name) + ": elements are not aligned to their " + std::to_string(array.itemsize()) +
         " bytes; use numpy.require(array, requirements=\"A\")");
}

template <class Array>
void check_shape(const char* name, const Array& array, std::initializer_list<std::int64_t> expected) {
  check_aligned(name, array);
  const auto rank = static_cast<std::int64_t>(array.ndim());
  if (std::equal(expected.begin(), expected.end(), array.shape_ptr(), array.shape_ptr() + rank)) return;
  refuse(std::string(name) + " has shape " + shape_text(rank, array.shape_ptr()) + ", expected " +
         shape_text(static_cast<std::int64_t>(expected.size()), expected.begin()));
}

inline void check_columns(const char* name, const RowsView& rows, std::int64_t d) {
  if (rows.d == d) return;
  refuse(std::string(name) + " has " + std::to_string(rows.d) + " columns, expected " + std::to_string(d));
}

// Checks that `count` numbers are all in [low, end).
template <class Number>
void check_numbers(const char* name, const Number* numbers, std::int64_t count, std::int64_t low, std::int64_t end) {
  using Bits = std::make_unsigned_t<Number>;
  if constexpr (sizeof(Number) < sizeof end) end = std::min(end, std::int64_t{std::numeric_limits<Number>::max()} + 1);
  const auto first = static_cast<Bits>(low), span = static_cast<Bits>(static_cast<Bits>(end) - first);
  const auto outside = [&](Number number) { return static_cast<Bits>(static_cast<Bits>(number) - first) >= span; };
  bool any = low >= end && count > 0;
  // without branches, so that compilers vectorize the loop
  for (std::int64_t i = 0; i < count; ++i) any |= outside(numbers[i]);
  if (!any) return;
  const std::int64_t at = std::find_if(numbers, numbers + count, outside) - numbers;
  refuse(std::string(name) + " has " + std::to_string(numbers[at]) + " at place " + std::to_string(at) + ", expected " +
         std::to_string(low) + " to " + std::to_string(end - 1));
}

// Checks that numbers start at `first`, and that each exceeds the one before by `least` to `most`.
template <class Number>
void check_ascending(const char* name, const Number* numbers, std::int64_t count, std::int64_t first,
                     std::int64_t least, std::int64_t most) {
  if (count == 0) return;
  if (numbers[0] != first) {
    refuse(std::string(name) + " begins with " + std::to_string(numbers[0]) + ", expected " + std::to_string(first));
  }
  for (std::int64_t i = 1; i < count; ++i) {
    const bool ascends = numbers[i] >= numbers[i - 1];
    // Unsigned, because the difference of signed numbers may overflow, which is undefined.
    const auto step = static_cast<std::uint64_t>(numbers[i]) - static_cast<std::uint64_t>(numbers[i - 1]);
    if (ascends && step >= static_cast<std::uint64_t>(least) && step <= static_cast<std::uint64_t>(most)) continue;
    refuse(std::string(name) + " goes from " + std::to_string(numbers[i - 1]) + " to " + std::to_string(numbers[i]) +
           " at place " + std::to_string(i) + ", expected steps of " + std::to_string(least) + " to " +
           std::to_string(most));
  }
}

inline std::string type_text(nanobind::dlpack::dtype type) {
  using Code = nanobind::dlpack::dtype_code;
  const auto code = static_cast<Code>(type.code);
  const char* kind = code == Code::Float ? "float" : code == Code::Int ? "int" : code == Code::UInt ? "uint" : nullptr;
  if (kind == nullptr) return "of another type";
  return kind + std::to_string(type.bits);
}

// Whether an array is float64 and not float32; throws for other types.
inline bool is_double(const char* name, nanobind::dlpack::dtype type) {
  if (type != nanobind::dtype<float>() && type != nanobind::dtype<double>()) {
    refuse_type(std::string(name) + " are not float32 or float64 but " + type_text(type));
  }
  return type == nanobind::dtype<double>();
}

// Whether an array is int64 and not int32; throws for other types.
inline bool is_wide(const char* name, nanobind::dlpack::dtype type) {
  if (type != nanobind::dtype<std::int32_t>() && type != nanobind::dtype<std::int64_t>()) {
    refuse_type(std::string(name) + " are not int32 or int64 but " + type_text(type));
  }
  return type == nanobind::dtype<std::int64_t>();
}

inline void check_type(const char* name, nanobind::dlpack::dtype type, nanobind::dlpack::dtype expected) {
  if (type == expected) return;
  refuse_type(std::string(name) + " are " + type_text(type) + ", expected " + type_text(expected));
}

// Checks that the ids of n points fit in the type Id.
template <class Id>
void check_id_type(const char* name, std::int64_t n) {
  if (n - 1 <= std::int64_t{std::numeric_limits<Id>::max()}) return;
  refuse_type(std::string(name) + " are int32, expected int64 for " + std::to_string(n) + " points");
}

}  // namespace tonari
