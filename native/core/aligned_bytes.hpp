// Memory for large arrays, which is taken from the operating system and returned to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace tonari {

// Returns memory to the system, since memory that malloc keeps after free() could exceed a memory budget.
struct FreeBytes {
  std::size_t mapped = 0;  // size of the mapping in bytes; 0 if the memory is from malloc
  void operator()(std::byte* memory) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeBytes>;  // 64-byte aligned

// Allocates memory, zeroed if `zeroed`. From 1 MiB on, a page uses memory only once it is touched.
AlignedBytes allocate(std::int64_t bytes, bool zeroed = true);

// Allocates zeroed memory that will be written completely, in the system's largest pages.
AlignedBytes allocate_whole(std::int64_t bytes);

// Vectors that loops read a register at a time. No register's load spans two cache lines, which would take twice as
// long.
template <class T>
struct ByLines {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  ByLines() = default;
  template <class U>
  ByLines(const ByLines<U>& /*of*/) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), alignment)); }
  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete(memory, alignment); }
  bool operator==(const ByLines&) const = default;
};
template <class T>
using AlignedVector = std::vector<T, ByLines<T>>;

}  // namespace tonari
