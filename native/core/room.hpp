// Working memory of a method: it grows, is never cleared, and starts at a cache line. Each thread has one per use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace tonari {
namespace {

template <class T>
class Room {
 public:
  Room() = default;
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() { ::operator delete(data_, kLine); }

  // Memory for `count` elements; the first `keep` keep their values.
  T* get(std::int64_t count, std::int64_t keep = 0) {
    if (count > count_) {
      auto* larger = static_cast<T*>(::operator new(static_cast<std::size_t>(count) * sizeof(T), kLine));
      if (keep > 0) std::memcpy(larger, data_, static_cast<std::size_t>(keep) * sizeof(T));
      ::operator delete(data_, kLine);
      data_ = larger;
      count_ = count;
    }
    return data_;
  }

 private:
  static constexpr std::align_val_t kLine{64};
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace
}  // namespace tonari
