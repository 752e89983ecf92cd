// Bitonic sorting network in registers (Batcher 1968; Sismanis et al. 2012 select with it).
//
//   entry a of a list is in lane a / length of register a % length       address:  lane bits | register bits
//   merge runs of s/2 into runs of s:  compare a with a ^ (s - 1), then with a ^ s/4, a ^ s/8, ..., a ^ 1
//
// so that all steps within `length` compare whole registers, and only the few above it move lanes. SortLanes are
// (key, index) pairs in lexicographic order: one signed 64-bit word for 32-bit keys, two for 64-bit keys.
#pragma once

#include <cstdint>
#include <limits>

#include "select/keys.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

// The key that pads lists: larger than every entry of a row, NaN included.
template <class Key>
Word<Key> last_word() {
  return pack_word(kLastKey<Key>, std::numeric_limits<std::int32_t>::max());
}

using Words = Register<std::int64_t>;
constexpr int kWordLanes = Words::lanes;

// A register of entries.
template <class Key>
struct SortLanes;

template <>
struct SortLanes<std::int32_t> {
  Words word;
  static constexpr std::int64_t kFlip = std::numeric_limits<std::int64_t>::min();  // words are unsigned, lanes are not

  void set(std::int64_t lane, Word<std::int32_t> value) { word.set(lane, static_cast<std::int64_t>(value) ^ kFlip); }
  void set(const Word<std::int32_t>* values) {
    word = Words::load(reinterpret_cast<const std::int64_t*>(values)) ^ kFlip;
  }
  void set(const std::int32_t* keys, std::int64_t column) {
    word = Words::load(keys) << 32 | (Words::numbers() + column);
  }
  void set_column(const std::int32_t* keys, std::int32_t column) { word = Words::load(keys) << 32 | Words(column); }
  void set_last() { word = std::numeric_limits<std::int64_t>::max(); }
  Word<std::int32_t> get(std::int64_t lane) const { return static_cast<std::uint64_t>(word[lane] ^ kFlip); }
  template <int FLIP> SortLanes flipped() const { return {xor_lanes<FLIP>(word)}; }
  static SortLanes chosen(Words::Truth first, SortLanes a, SortLanes b) { return {choose(first, a.word, b.word)}; }
  static void order(SortLanes& a, SortLanes& b) {
    const Words least = min(a.word, b.word);
    b.word = max(b.word, a.word);  // with these operands both take one comparison
    a.word = least;
  }
};

template <>
struct SortLanes<std::int64_t> {
  Words key, index;

  void set(std::int64_t lane, Word<std::int64_t> value) {
    key.set(lane, word_key<std::int64_t>(value));
    index.set(lane, word_index<std::int64_t>(value));
  }
  void set(const Word<std::int64_t>* values) {
    for (int lane = 0; lane < kWordLanes; ++lane) set(lane, values[lane]);
  }
  void set(const std::int64_t* keys, std::int64_t column) {
    key = Words::load(keys);
    index = Words::numbers() + column;
  }
  void set_column(const std::int64_t* keys, std::int32_t column) {
    key = Words::load(keys);
    index = column;
  }
  void set_last() {
    key = kLastKey<std::int64_t>;
    index = std::numeric_limits<std::int32_t>::max();
  }
  Word<std::int64_t> get(std::int64_t lane) const {
    return pack_word(key[lane], static_cast<std::int32_t>(index[lane]));
  }
  template <int FLIP> SortLanes flipped() const { return {xor_lanes<FLIP>(key), xor_lanes<FLIP>(index)}; }
  static SortLanes chosen(Words::Truth first, SortLanes a, SortLanes b) {
    return {choose(first, a.key, b.key), choose(first, a.index, b.index)};
  }
  static void order(SortLanes& a, SortLanes& b) {
    const Words::Truth swap = (b.key < a.key) | less_among(b.key == a.key, b.index, a.index);
    const SortLanes least = chosen(swap, b, a);
    b = chosen(swap, a, b);
    a = least;
  }
};

// The lanes whose bit BIT is clear.
template <int BIT>
Words::Truth lower_lanes() {
  std::uint32_t lower = 0;
  for (int lane = 0; lane < kWordLanes; ++lane) lower |= static_cast<std::uint32_t>((lane & BIT) == 0) << lane;
  return Words::Truth::of(lower);
}

// Does the steps of distance, distance / 2, ..., 1 on eight registers, which stay in registers.
template <class Key>
void clean_eight(SortLanes<Key>* held, std::int64_t distance) {
  using E = SortLanes<Key>;
  if (distance >= 4) {
    for (int i = 0; i < 4; ++i) E::order(held[i], held[i + 4]);
  }
  if (distance >= 2) {
    for (int i = 0; i < 8; i += 4) E::order(held[i], held[i + 2]), E::order(held[i + 1], held[i + 3]);
  }
  for (int i = 0; i < 8; i += 2) E::order(held[i], held[i + 1]);
}

// Does the steps of distance, distance / 2, ..., 1; distance < length, and both are powers of two.
template <class Key>
void clean_halves(SortLanes<Key>* entries, std::int64_t length, std::int64_t distance) {
  using E = SortLanes<Key>;
  for (; distance >= 16; distance /= 4) {  // two steps at once, since loads and stores are the bottleneck
    for (std::int64_t run = 0; run < length; run += 2 * distance) {
      for (std::int64_t i = run; i < run + distance / 2; ++i) {
        E *a = entries + i, *b = a + distance / 2, *c = a + distance, *d = b + distance;
        E::order(*a, *c), E::order(*b, *d), E::order(*a, *b), E::order(*c, *d);
      }
    }
  }
  for (; distance >= 8 || (length < 8 && distance > 0); distance /= 2) {
    for (std::int64_t run = 0; run < length; run += 2 * distance) {
      for (std::int64_t i = run; i < run + distance; ++i) E::order(entries[i], entries[i + distance]);
    }
  }
  if (distance == 0) return;
  for (std::int64_t first = 0; first < length; first += 8) {
    E held[8];
    for (int i = 0; i < 8; ++i) held[i] = entries[first + i];
    clean_eight(held, distance);
    for (int i = 0; i < 8; ++i) entries[first + i] = held[i];
  }
}

// Sorts each run of `size` registers, lane by lane; size <= length.
template <class Key>
void sort_lanes(SortLanes<Key>* entries, std::int64_t length, std::int64_t size) {
  using E = SortLanes<Key>;
  std::int64_t sorted = 1;
  if (length >= 8 && size >= 8) {  // the first three merges stay in registers
    for (std::int64_t first = 0; first < length; first += 8) {
      E held[8];
      for (int i = 0; i < 8; ++i) held[i] = entries[first + i];
      for (int i = 0; i < 8; i += 2) E::order(held[i], held[i + 1]);
      for (int i = 0; i < 8; i += 4) E::order(held[i], held[i + 3]), E::order(held[i + 1], held[i + 2]);
      clean_eight(held, 1);
      for (int i = 0; i < 4; ++i) E::order(held[i], held[7 - i]);
      clean_eight(held, 2);
      for (int i = 0; i < 8; ++i) entries[first + i] = held[i];
    }
    sorted = 8;
  }
  for (; sorted < size; sorted *= 2) {
    for (std::int64_t run = 0; run < length; run += 2 * sorted) {
      for (std::int64_t i = 0; i < sorted; ++i) E::order(entries[run + i], entries[run + 2 * sorted - 1 - i]);
    }
    clean_halves(entries, length, sorted / 2);
  }
}

// Does the step a ^ (length * BIT) on all registers, which compares lanes that differ in bit BIT.
template <int BIT, class Key>
void clean_lanes(SortLanes<Key>* entries, std::int64_t length) {
  using E = SortLanes<Key>;
  for (std::int64_t i = 0; i < length; ++i) {
    E lesser = entries[i], greater = entries[i].template flipped<BIT>();
    E::order(lesser, greater);
    entries[i] = E::chosen(lower_lanes<BIT>(), lesser, greater);
  }
  if constexpr (BIT > 1) clean_lanes<BIT / 2>(entries, length);
}

// Merges runs of BIT whole lanes into runs of 2 * BIT, up to runs of `lanes` lanes.
template <int BIT, class Key>
void merge_lanes(SortLanes<Key>* entries, std::int64_t length, int lanes) {
  using E = SortLanes<Key>;
  if constexpr (BIT < kWordLanes) {
    if (BIT >= lanes) return;
    constexpr int flip = 2 * BIT - 1;
    for (std::int64_t i = 0; i < (length + 1) / 2; ++i) {
      E &front = entries[i], &back = entries[length - 1 - i];
      E lesser = front, greater = back.template flipped<flip>();
      E::order(lesser, greater);
      const E upper = E::chosen(lower_lanes<BIT>(), greater, lesser);
      front = E::chosen(lower_lanes<BIT>(), lesser, greater);
      if (length > 1) back = upper.template flipped<flip>();
    }
    if constexpr (BIT > 1) clean_lanes<BIT / 2>(entries, length);
    clean_halves(entries, length, length / 2);
    merge_lanes<2 * BIT>(entries, length, lanes);
  }
}

// Sorts each run of `size` entries, a power of two up to kWordLanes * length.
template <class Key>
void sort_runs(SortLanes<Key>* entries, std::int64_t length, std::int64_t size) {
  sort_lanes(entries, length, size < length ? size : length);
  merge_lanes<1>(entries, length, static_cast<int>(size / length));
}

}  // namespace
}  // namespace tonari
