// Memory for large arrays, which comes from the operating system and goes back to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tonari {

// malloc may keep what a thread frees, so that memory which nothing uses would exceed a memory budget.
struct FreeBytes {
  std::size_t mapped = 0;  // bytes; 0 if the memory is malloc's
  void operator()(std::byte* memory) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeBytes>;  // 64-byte aligned

// Zeroed if `zeroed`. From 1 MiB on, a page is counted as memory in use only once it is touched.
AlignedBytes allocate(std::int64_t bytes, bool zeroed = true);

}  // namespace tonari
