#include "core/aligned_bytes.hpp"

#if defined(__unix__)
#include <sys/mman.h>
#endif

#include <cstdlib>
#include <cstring>
#include <new>

namespace tonari {

void FreeBytes::operator()(std::byte* memory) const {
#if defined(__unix__)
  if (mapped != 0) {
    munmap(memory, mapped);
    return;
  }
#endif
  std::free(memory);
}

AlignedBytes allocate(std::int64_t bytes, bool zeroed) {
  constexpr std::size_t alignment = 64;
  const std::size_t rounded = (static_cast<std::size_t>(bytes) + alignment - 1) / alignment * alignment;
#if defined(__unix__)
  constexpr std::size_t large = std::size_t{1} << 20;
  if (rounded >= large) {
    void* pages = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return AlignedBytes(static_cast<std::byte*>(pages), FreeBytes{rounded});
  }
#endif
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  if (zeroed) std::memset(memory, 0, rounded);
  return AlignedBytes(static_cast<std::byte*>(memory));
}

}  // namespace tonari
