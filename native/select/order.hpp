// Orders the selected entries: the last step of every k-selection method, and of the exact search.
//
//   word = key, sign flipped | index      unsigned; few words go through a bitonic network, many are sorted by digits
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/room.hpp"
#include "select/keys.hpp"
#include "select/network.hpp"

namespace tonari {

struct Ranked {
  double key;  // ascending: the returned value, negated where larger is nearer
  std::int64_t id;
  bool operator<(const Ranked& other) const { return key < other.key || (key == other.key && id < other.id); }
};

// Keeps the k smallest, in no order.
void keep_smallest(std::vector<Ranked>& items, std::int64_t k);

// Sorts ascending. Keys that are float32 values and ids below 2^32 share one 64-bit word.
void sort_ranked(std::vector<Ranked>& items);

namespace {

// A type with internal linkage, so that library code instantiated with it is never shared between instruction sets.
struct Smaller {
  template <class Item>
  bool operator()(const Item& a, const Item& b) const {
    return a < b;
  }
};

// Moves the k smallest to the front, in no order. 1 <= k <= count.
template <class Item>
void keep_smallest(Item* items, std::int64_t count, std::int64_t k) {
  std::nth_element(items, items + (k - 1), items + count, Smaller{});
}

// Sorts by digits, the least significant first; bits in which all words agree are skipped. Ascending indices need not
// be sorted, since each pass keeps the order of equal digits.
template <class W>
void sort_digits(W* words, std::int64_t count, Room<W>& room) {
  constexpr int most_bits = 11;
  const int digit_bits = count < 4096 ? 8 : most_bits;  // clearing counters costs as much as moving words
  const std::uint32_t mask = (1u << digit_bits) - 1;
  W varying = 0;
  bool ascending = true;
  for (std::int64_t i = 1; i < count; ++i) {
    varying |= words[i] ^ words[0];
    ascending &= static_cast<std::uint32_t>(words[i - 1]) < static_cast<std::uint32_t>(words[i]);
  }
  W *from = words, *to = room.get(count);
  std::uint32_t starts[1u << most_bits];
  for (int shift = ascending ? 32 : 0; shift < static_cast<int>(8 * sizeof(W)) && varying >> shift != 0;) {
    if ((varying >> shift & 1) == 0) {
      ++shift;
      continue;
    }
    const auto digit = [&](W word) { return static_cast<std::uint32_t>(word >> shift) & mask; };
    std::memset(starts, 0, (mask + 1) * sizeof *starts);
    for (std::int64_t i = 0; i < count; ++i) ++starts[digit(from[i])];
    std::uint32_t before = 0;
    for (std::uint32_t d = 0; d <= mask; ++d) {
      const std::uint32_t here = starts[d];
      starts[d] = before;
      before += here;
    }
    for (std::int64_t i = 0; i < count; ++i) to[starts[digit(from[i])]++] = from[i];
    W* const sorted = to;
    to = from;
    from = sorted;
    shift += digit_bits;
  }
  if (from != words) std::memcpy(words, from, static_cast<std::size_t>(count) * sizeof(W));
}

// Sorts by a bitonic network, whose time does not depend on the data.
template <class Key>
void sort_by_network(Word<Key>* words, std::int64_t count, SortLanes<Key>* entries) {
  std::int64_t length = 1;
  while (length * kWordLanes < count) length *= 2;
  std::int64_t a = 0;
  for (; a + kWordLanes <= count; a += kWordLanes) entries[a / kWordLanes].set(words + a);
  for (; a < length * kWordLanes; ++a) {
    const bool real = a < count;
    entries[a / kWordLanes].set(a % kWordLanes, real ? words[a] : last_word<Key>());
  }
  sort_runs(entries, length, length * kWordLanes);
  a = 0;
  for (std::int64_t lane = 0; a < count; ++lane) {
    for (std::int64_t i = 0; i < length && a < count; ++i) words[a++] = entries[i].get(lane);
  }
}

// Sorts ascending, in place; `room` is scratch memory.
template <class Key>
void sort_words(Word<Key>* words, std::int64_t count, Room<Word<Key>>& room) {
  constexpr std::int64_t few = kWordLanes == 8 ? 1024 : kWordLanes == 4 ? 256 : 64;
  if (count > few) return sort_digits(words, count, room);
  SortLanes<Key> entries[few / kWordLanes];
  sort_by_network(words, count, entries);
}

// The value that pads the answers of rows shorter than k: the last in the order.
template <class Raw>
Raw last_value(const SelectTask& task) {
  switch (task.type) {
    case ValueType::f32: return static_cast<Raw>(task.largest ? 0xff800000u : 0x7f800000u);
    case ValueType::f16: return static_cast<Raw>(task.largest ? 0xfc00u : 0x7c00u);
    case ValueType::bf16: return static_cast<Raw>(task.largest ? 0xff80u : 0x7f80u);
    case ValueType::f64: return static_cast<Raw>(task.largest ? 0xfff0000000000000u : 0x7ff0000000000000u);
    case ValueType::i32: return static_cast<Raw>(task.largest ? 0x80000000u : 0x7fffffffu);
    case ValueType::u8: return static_cast<Raw>(task.largest ? 0u : 255u);
  }
  return 0;
}

template <class Raw, class Key>
void write_values(const SelectTask& task, std::int64_t row, const Word<Key>* words, std::int64_t count) {
  const Raw* values = static_cast<const Raw*>(task.values) + row * task.stride;
  Raw* out = static_cast<Raw*>(task.out_values) + row * task.k;
  for (std::int64_t j = 0; j < count; ++j) out[j] = values[word_index<Key>(words[j])];
  for (std::int64_t j = count; j < task.k; ++j) out[j] = last_value<Raw>(task);
}

// Writes a row's answer: the words in their order, then padding up to k.
template <class Key>
void write_row(const SelectTask& task, std::int64_t row, const Word<Key>* words, std::int64_t count) {
  std::int32_t* indices = task.out_indices + row * task.k;
  for (std::int64_t j = 0; j < count; ++j) indices[j] = word_index<Key>(words[j]);
  for (std::int64_t j = count; j < task.k; ++j) indices[j] = -1;
  if constexpr (sizeof(Key) == 8) {
    write_values<std::uint64_t, Key>(task, row, words, count);
  } else {
    switch (task.type) {
      case ValueType::f16:
      case ValueType::bf16: return write_values<std::uint16_t, Key>(task, row, words, count);
      case ValueType::u8: return write_values<std::uint8_t, Key>(task, row, words, count);
      default: return write_values<std::uint32_t, Key>(task, row, words, count);
    }
  }
}

// Keeps the min(k, length) smallest of `count` words, sorts them if the task says so, and writes the row; `room` is
// scratch memory.
template <class Key>
void finish_row(const SelectTask& task, std::int64_t row, Word<Key>* words, std::int64_t count, Room<Word<Key>>& room) {
  const std::int64_t wanted = std::min(task.k, task.length(row));
  if (wanted > 0 && count > wanted && (!task.sorted || count > wanted + wanted / 2)) {
    keep_smallest(words, count, wanted);
    count = wanted;
  }
  if (task.sorted) sort_words<Key>(words, count, room);
  write_row<Key>(task, row, words, wanted);
}
template <class Key>
void finish_row(const SelectTask& task, std::int64_t row, Word<Key>* words, std::int64_t count) {
  Room<Word<Key>> room;
  finish_row<Key>(task, row, words, count, room);
}

}  // namespace
}  // namespace tonari
