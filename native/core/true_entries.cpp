#include "core/true_entries.hpp"

#include <bit>
#include <cstring>

namespace tonari {

namespace {

constexpr int kWord = 8, kRun = 64;

std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, kWord);
  return word;
}

// Bit i is set if byte i is not zero.
std::uint64_t nonzero_bytes(std::uint64_t word) {
  constexpr std::uint64_t low = 0x7f7f7f7f7f7f7f7f, gather = 0x0102040810204080;
  const std::uint64_t ones = ((((word & low) + low) | word) & ~low) >> 7;
  return ones * gather >> (kRun - kWord);
}

}  // namespace

// Most runs of 64 entries have no true entry; one test skips such a run.
std::int64_t true_entries(const std::uint8_t* mask, std::int64_t n, std::int64_t* places, std::int64_t room) {
  std::int64_t found = 0, begin = 0;
  for (; begin + kRun <= n; begin += kRun) {
    const std::uint8_t* run = mask + begin;
    std::uint64_t any = 0;
    for (int i = 0; i < kRun; i += kWord) any |= word_at(run + i);
    if (any == 0) continue;
    std::uint64_t bits = 0;
    for (int i = 0; i < kRun; i += kWord) bits |= nonzero_bytes(word_at(run + i)) << i;
    if (found + std::popcount(bits) > room) return room + 1;
    for (; bits != 0; bits &= bits - 1) places[found++] = begin + std::countr_zero(bits);
  }
  for (; begin < n; ++begin) {
    if (mask[begin] == 0) continue;
    if (found == room) return room + 1;
    places[found++] = begin;
  }
  return found;
}

}  // namespace tonari
