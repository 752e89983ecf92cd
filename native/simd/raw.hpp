// The vector types of GCC and clang (vector_size): a register of numbers, or less, with the operators of the language.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tonari {
namespace {

template <class T, int N>
struct RawVector {
  typedef T Type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using Raw = typename RawVector<T, N>::Type;

template <class R>
using ElementOf = std::remove_cvref_t<decltype(std::declval<R&>()[0])>;

template <int BYTES>
using Integer = std::conditional_t<
    BYTES == 8, std::int64_t,
    std::conditional_t<BYTES == 4, std::int32_t, std::conditional_t<BYTES == 2, std::int16_t, std::int8_t>>>;
// The type of a comparison's result: as many integers of the same size.
template <class R>
using IntegersOf = Raw<Integer<sizeof(ElementOf<R>)>, sizeof(R) / sizeof(ElementOf<R>)>;

}  // namespace
}  // namespace tonari
