// Memory for what is large: from the operating system, and back to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tonari {

// malloc may keep what a thread frees, and then a memory budget is overrun by what nobody holds.
struct FreeBytes {
  std::size_t mapped = 0;  // bytes; 0 for memory of malloc
  void operator()(std::byte* memory) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeBytes>;  // 64-byte aligned

// Zeroed unless nobody cares. From 1 MiB on, pages count as memory in use only once they are touched.
AlignedBytes allocate(std::int64_t bytes, bool zeroed = true);

}  // namespace tonari
