// Keeps the k best points of a query, by (returned value, index), in a list of items that the caller owns: one list for
// a query after the other, or one for each of many queries.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "kdtree/reach.hpp"
#include "select/order.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

// For float32 values, int32 indices and small k: sorted words of 64 bits,  value | index,  whose order is right because
// no value is negative. A new word is inserted without branches: each word becomes the smaller of itself and the larger
// of the new word and the previous one.
class NearestWords {
 public:
  using Item = std::int64_t;
  static constexpr std::int64_t kMost = 256;  // the time of an insertion is proportional to k

  NearestWords(std::int64_t k, bool) : k_(k), size_((k + W - 1) / W * W) {}

  std::int64_t size() const { return size_; }  // items of a list
  void use(Item* list) { words_ = list; }

  void clear() {
    for (std::int64_t j = 0; j < size_; ++j) words_[j] = kNone;
  }

  void offer(double value, std::int64_t id) {
    const auto key = static_cast<std::int64_t>(std::bit_cast<std::int32_t>(static_cast<float>(value)));
    const std::int64_t word = key << 32 | id;
    if (word < words_[k_ - 1]) insert(word);
  }

  template <class T>
  T reach(const Reach<T>& reach) const {
    return reach.of_single(static_cast<std::int32_t>(words_[k_ - 1] >> 32));
  }

  template <class Value, class Index>
  void write(Value* values, Index* indices) {
    for (std::int64_t j = 0; j < k_; ++j) {
      values[j] = static_cast<Value>(std::bit_cast<float>(static_cast<std::int32_t>(words_[j] >> 32)));
      indices[j] = static_cast<Index>(words_[j] & 0x7fffffff);
    }
  }

 private:
  using Words = Register<std::int64_t>;
  static constexpr int W = Words::lanes;
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  void insert(std::int64_t word) {
    if constexpr (W == 2) {  // baseline registers do not compare 64 bits
      std::int64_t at = k_ - 1;
      for (; at > 0 && words_[at - 1] > word; --at) words_[at] = words_[at - 1];
      words_[at] = word;
    } else {
      std::int64_t at = size_ - W;
      auto here = Words::load(words_ + at);
      for (;; at -= W) {
        const Words before = at > 0 ? Words::load(words_ + at - W) : Words(std::numeric_limits<std::int64_t>::min());
        min(here, max(slide(before, here), word)).store(words_ + at);
        if (at == 0 || words_[at - 1] <= word) return;
        here = before;
      }
    }
  }

  std::int64_t k_, size_;
  std::int64_t* words_ = nullptr;
};

// For any k, values and indices: a heap with the worst point at its root.
class NearestHeap {
 public:
  using Item = Ranked;

  NearestHeap(std::int64_t k, bool double_output) : k_(k), double_output_(double_output) {}

  std::int64_t size() const { return k_; }
  void use(Item* list) { items_ = list; }

  void clear() {
    constexpr Ranked none{std::numeric_limits<double>::infinity(), std::numeric_limits<std::int64_t>::max()};
    for (std::int64_t j = 0; j < k_; ++j) items_[j] = none;
  }

  void offer(double value, std::int64_t id) {
    const Ranked item{double_output_ ? value : static_cast<double>(static_cast<float>(value)), id};
    if (!(item < items_[0])) return;
    std::int64_t hole = 0;
    for (;;) {
      std::int64_t child = 2 * hole + 1;
      if (child >= k_) break;
      if (child + 1 < k_) child += items_[child] < items_[child + 1];
      if (!(item < items_[child])) break;
      items_[hole] = items_[child];
      hole = child;
    }
    items_[hole] = item;
  }

  template <class T>
  T reach(const Reach<T>& reach) const {
    const double worst = items_[0].key;
    return double_output_ ? reach.of(worst) : reach.of_single(std::bit_cast<std::int32_t>(static_cast<float>(worst)));
  }

  template <class Value, class Index>
  void write(Value* values, Index* indices) {
    std::sort(items_, items_ + k_, Smaller{});
    for (std::int64_t j = 0; j < k_; ++j) {
      values[j] = static_cast<Value>(items_[j].key);
      indices[j] = static_cast<Index>(items_[j].id);
    }
  }

 private:
  std::int64_t k_;
  bool double_output_;
  Ranked* items_ = nullptr;
};

}  // namespace
}  // namespace tonari
