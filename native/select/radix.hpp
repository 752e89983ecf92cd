// Radix selection (as in Alabi et al. 2012 and AIR top-k on GPUs), row by row: by digits of the key, the most
// significant first.
//
//   count how often each digit occurs       3 0 5 1 7 ...
//   the k-th smallest has the digit d at which the running sum reaches k
//   entries with a smaller digit belong to the answer; those with d are examined again, by the next digit
//
// Leading bits that all keys of a row share are skipped. Both parts keep the order of columns, so that the first of the
// entries that agree in all digits are taken.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "select/compact.hpp"
#include "select/order.hpp"

namespace tonari {
namespace {

template <class Key, bool COUNT>
class RadixRows {
 public:
  explicit RadixRows(const SelectTask& task) : task_(task), reader_(task) {}

  std::int64_t select(std::int64_t begin, std::int64_t end) {
    std::int64_t nan_row = -1;
    for (std::int64_t row = begin; row < end; ++row) {
      select_row(row);
      if (reader_.saw_nan() && nan_row < 0) nan_row = row;
    }
    if constexpr (COUNT) task_.counters->lanes = 1;
    return nan_row;
  }

 private:
  using Bits = std::make_unsigned_t<Key>;
  static constexpr int kKeyBits = 8 * sizeof(Key);
  static constexpr Bits kSign = Bits{1} << (kKeyBits - 1);
  static constexpr int kHistograms = 4;  // so that successive equal digits do not wait for each other

  static Key key_of(Bits bits) { return static_cast<Key>(bits ^ kSign); }
  static Bits bits_of(Key key) { return static_cast<Bits>(key) ^ kSign; }

  void select_row(std::int64_t row) {
    const std::int64_t length = task_.length(row);
    std::int64_t wanted = std::min(task_.k, length), taken = 0, count = length;
    Key* keys = key_room_.get(length + kSpill);
    std::int32_t* columns = column_room_.get(length + kSpill);
    Key* answer_keys = answer_key_room_.get(task_.k + kSpill);
    std::int32_t* answer_columns = answer_column_room_.get(task_.k + kSpill);
    const Key* read = reader_.read(row, 0, length, keys);
    bool first = true;  // whether this is the first digit, where columns are positions
    Bits differ = 0;
    for (std::int64_t i = 1; i < length; ++i) differ |= static_cast<Bits>(read[i] ^ read[0]);
    int rest = std::bit_width(differ);  // number of bits of the key that are still unknown
    Bits known = length > 0 ? bits_of(read[0]) & ~low_bits(rest) : 0;
    while (rest > 0 && count > wanted) {
      const int shift = std::max(rest - static_cast<int>(task_.options.bits), 0);
      std::int64_t below = 0;
      known |= find_digit(read, count, shift, low_bits(rest - shift), wanted, below) << shift;
      rest = shift;
      if constexpr (COUNT) task_.counters->examined += count;
      const Key least = key_of(known), greatest = key_of(known | low_bits(rest));
      count = first ? compact<false>(greatest, count, read, 0, count, keys, columns)
                    : compact<false>(greatest, count, read, same(columns), count, keys, columns);
      compact<true>(least, 0, same(keys), same(columns), count, answer_keys + taken, answer_columns + taken, keys,
                    columns);
      taken += below, wanted -= below, count -= below;
      read = keys;
      first = false;
    }
    Word<Key>* words = words_.get(taken + wanted);
    for (std::int64_t i = 0; i < taken; ++i) words[i] = pack_word(answer_keys[i], answer_columns[i]);
    for (std::int64_t i = 0; i < wanted; ++i) {
      words[taken + i] = pack_word(read[i], first ? static_cast<std::int32_t>(i) : columns[i]);
    }
    finish_row<Key>(task_, row, words, taken + wanted, sorting_);
  }

  template <class T>
  static const T* same(T* pointer) {
    return pointer;
  }
  static Bits low_bits(int count) { return count == kKeyBits ? ~Bits{0} : (Bits{1} << count) - 1; }

  // The digit of the k-th smallest key, and the number of keys with a smaller digit.
  Bits find_digit(const Key* keys, std::int64_t count, int shift, Bits mask, std::int64_t k, std::int64_t& below) {
    const auto digits = static_cast<std::int64_t>(mask) + 1;
    const std::int64_t apart = count >= kHistograms * digits ? digits : 0;  // for few keys one histogram is enough
    std::uint32_t* counts = counts_.get(kHistograms * digits);
    std::memset(counts, 0, static_cast<std::size_t>(kHistograms * digits) * sizeof *counts);
    const auto digit = [&](std::int64_t i) { return static_cast<std::int64_t>(bits_of(keys[i]) >> shift & mask); };
    std::int64_t i = 0;
    for (; i + kHistograms <= count; i += kHistograms) {
      for (int h = 0; h < kHistograms; ++h) ++counts[h * apart + digit(i + h)];
    }
    for (; i < count; ++i) ++counts[digit(i)];
    for (std::int64_t d = 0;; ++d) {
      std::int64_t here = 0;
      for (int h = 0; h < kHistograms; ++h) here += counts[h * digits + d];
      if (below + here >= k) return static_cast<Bits>(d);
      below += here;
    }
  }

  const SelectTask& task_;
  KeyReader<Key> reader_;
  Room<Key> key_room_, answer_key_room_;
  Room<std::int32_t> column_room_, answer_column_room_;
  Room<std::uint32_t> counts_;
  Room<Word<Key>> words_, sorting_;
};

}  // namespace
}  // namespace tonari
