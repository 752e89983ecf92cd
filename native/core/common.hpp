// Names that all kernels share. This header does not include Python, and needs only baseline x86-64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tonari {

enum class Dtype : int { f32, f16, bf16, f64, u8, i8 };

// Read-only rows of any accepted type. The elements of a row are adjacent.
struct RowsView {
  const void* data = nullptr;
  std::int64_t n = 0;
  std::int64_t d = 0;
  Dtype dtype = Dtype::f32;
  const std::int64_t* order = nullptr;  // the row at each place; null: place i has row i
  std::int64_t ordered = 0;             // number of places; an order may have fewer than all rows
  std::int64_t pitch = 0;  // bytes from a row to the next if rows have gaps between them; 0: rows are adjacent

  std::int64_t places() const { return order != nullptr ? ordered : n; }
};

constexpr int kLanes = 16;  // partial sums of the defined order: element i belongs to lane i % 16

}  // namespace tonari
