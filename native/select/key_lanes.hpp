// The widest register of the instruction set that a file is compiled for.
#pragma once

#include <cstdint>

namespace tonari {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class Key>
struct KeyLanes;  // a register of keys
template <>
struct KeyLanes<std::int32_t> {
  typedef std::int32_t Type __attribute__((vector_size(kVectorBytes)));
};
template <>
struct KeyLanes<std::int64_t> {
  typedef std::int64_t Type __attribute__((vector_size(kVectorBytes)));
};

}  // namespace
}  // namespace tonari
