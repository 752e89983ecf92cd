#include "core/aligned_bytes.hpp"

#if defined(__unix__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <cstdint>
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

AlignedBytes allocate_whole(std::int64_t bytes) {
#if defined(__linux__)
  constexpr std::size_t page = std::size_t{1} << 21, least = page - page / 16;
  if (const auto size = static_cast<std::size_t>(bytes); size >= least) {
    // The parts of the mapping before and after the aligned memory are unmapped. The last page is large if nearly all
    // of it is used.
    const std::size_t in_pages = (size + page - 1) / page * page,
                      small = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t kept = in_pages - size <= page / 16 ? in_pages : (size + small - 1) / small * small;
    void* const mapped = mmap(nullptr, kept + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(mapped) % page) % page;
    auto* const begin = static_cast<std::byte*>(mapped) + before;
    if (before > 0) munmap(mapped, before);
    if (before < page) munmap(begin + kept, page - before);
    madvise(begin, kept, MADV_HUGEPAGE);  // a hint: small pages work too
    return AlignedBytes(begin, FreeBytes{kept});
  }
#endif
  return allocate(bytes);
}

}  // namespace tonari
