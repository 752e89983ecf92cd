#include "order.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace tonari {
namespace {

// float32 to an unsigned integer of the same order:  sign bit set -> all bits flipped, else the sign bit flipped
//   word = kkkkkkkk kkkkkkkk kkkkkkkk kkkkkkkk iiiiiiii iiiiiiii iiiiiiii iiiiiiii      (smaller index wins a tie)
std::uint64_t pack_word(float key, std::int64_t id) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(key);
  const std::uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<std::uint64_t>(ordered) << 32 | static_cast<std::uint64_t>(id);
}

Ranked unpack_word(std::uint64_t word) {
  const auto ordered = static_cast<std::uint32_t>(word >> 32);
  const std::uint32_t bits = ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered;
  return {static_cast<double>(std::bit_cast<float>(bits)), static_cast<std::int64_t>(word & 0xffffffffu)};
}

// Least significant digit first; digits in which all words agree cost one look.
void sort_words(std::vector<std::uint64_t>& words) {
  constexpr int digit_bits = 11;
  constexpr std::size_t digits = std::size_t{1} << digit_bits;
  std::uint64_t varying = 0;
  for (std::uint64_t word : words) varying |= word ^ words[0];
  std::vector<std::uint64_t> other(words.size());
  std::vector<std::uint32_t> starts(digits);
  for (int shift = 0; shift < 64; shift += digit_bits) {
    if ((varying >> shift & (digits - 1)) == 0) continue;
    std::fill(starts.begin(), starts.end(), 0u);
    for (std::uint64_t word : words) ++starts[word >> shift & (digits - 1)];
    std::uint32_t before = 0;
    for (std::uint32_t& start : starts) before += std::exchange(start, before);
    for (std::uint64_t word : words) other[starts[word >> shift & (digits - 1)]++] = word;
    words.swap(other);
  }
}

bool fits_word(const Ranked& item) {
  return static_cast<double>(static_cast<float>(item.key)) == item.key && item.id < (std::int64_t{1} << 32);
}

}  // namespace

void keep_smallest(std::vector<Ranked>& items, std::int64_t k) {
  if (std::ssize(items) <= k) return;
  std::nth_element(items.begin(), items.begin() + (k - 1), items.end());
  items.resize(static_cast<std::size_t>(k));
}

void sort_ranked(std::vector<Ranked>& items) {
  constexpr std::size_t few = 200;  // below, clearing the digits' counters costs more than comparing
  if (items.size() < few || !std::all_of(items.begin(), items.end(), fits_word)) {
    std::sort(items.begin(), items.end());
    return;
  }
  std::vector<std::uint64_t> words;
  words.reserve(items.size());
  // Adding zero turns a key of -0 into 0, with which it ties.
  for (const Ranked& item : items) words.push_back(pack_word(static_cast<float>(item.key) + 0.0f, item.id));
  sort_words(words);
  std::transform(words.begin(), words.end(), items.begin(), unpack_word);
}

}  // namespace tonari
