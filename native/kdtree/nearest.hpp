// Keeps the k best points of a query, by (returned value, index), in a list that the caller owns: one list for one
// query after another, or one list for each of many queries.
//
// The kind of a list, sorted words, a pool of words or a heap, is chosen at run time, so that searches are not compiled
// for each. Few points are offered to a list, and each takes longer than the branch.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kdtree/reach.hpp"
#include "kdtree/search.hpp"
#include "select/halving.hpp"
#include "select/order.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

// A float32 value and an int32 index as one word of 64 bits,  value | index.  Words are in the order of (value, index),
// because no value is negative.
inline std::int64_t tree_word(double value, std::int64_t id) {
  return static_cast<std::int64_t>(std::bit_cast<std::int32_t>(static_cast<float>(value))) << 32 | id;
}

// Writes sorted words as separate values and indices.
template <class Value, class Index>
void write_tree_words(const std::int64_t* words, std::int64_t k, Value* values, Index* indices) {
  for (std::int64_t j = 0; j < k; ++j) {
    values[j] = static_cast<Value>(std::bit_cast<float>(static_cast<std::int32_t>(words[j] >> 32)));
    indices[j] = static_cast<Index>(words[j] & 0x7fffffff);
  }
}

// For small k: sorted words. A new word is inserted without branches: each word becomes the smaller of itself and the
// larger of the new word and the previous one.
class NearestWords {
 public:
  using Item = std::int64_t;
  static constexpr std::int64_t kMost = 32;  // the time of an insertion is proportional to k

  explicit NearestWords(std::int64_t k) : k_(k), size_((k + W - 1) / W * W) {}

  std::int64_t size() const { return size_; }  // number of items that a list takes
  void use(Item* list) { words_ = list; }

  void clear() {
    for (std::int64_t j = 0; j < size_; ++j) words_[j] = kNone;
  }

  void offer(double value, std::int64_t id) {
    const std::int64_t word = tree_word(value, id);
    if (word < words_[k_ - 1]) insert(word);
  }

  template <class T>
  T reach(const Reach<T>& reach) const {
    return reach.of_single(static_cast<std::int32_t>(words_[k_ - 1] >> 32));
  }

  template <class Value, class Index>
  void write(Value* values, Index* indices) {
    write_tree_words(words_, k_, values, indices);
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

// For large k: unordered words that do not exceed a bound. When the memory is full, halving finds a lower bound that
// little more than k words satisfy, and drops the others: a few operations per word, whatever k is. Bounds, and so
// the leaves that are visited, are the same on every instruction set.
class NearestPool {
 public:
  using Item = std::int64_t;

  explicit NearestPool(std::int64_t k) : k_(k), slack_(k / 16), most_(k + std::max<std::int64_t>(64, k / 4)) {}

  std::int64_t size() const { return kHead + most_ + W; }  // whole registers are stored after the last word
  void use(Item* list) { list_ = list; }

  void clear() {
    list_[kCount] = 0;
    list_[kBound] = kNone;
  }

  void offer(double value, std::int64_t id) {
    const std::int64_t word = tree_word(value, id);
    if (word > list_[kBound]) return;
    list_[kHead + list_[kCount]++] = word;
    if (list_[kCount] == most_) condense(slack_);
  }

  template <class T>
  T reach(const Reach<T>& reach) const {
    return reach.of_single(static_cast<std::int32_t>(list_[kBound] >> 32));
  }

  template <class Value, class Index>
  void write(Value* values, Index* indices) {
    if (list_[kCount] > k_) condense(0);
    sort_words<std::int32_t>(reinterpret_cast<Word<std::int32_t>*>(list_ + kHead), k_, room_);
    write_tree_words(list_ + kHead, k_, values, indices);
  }

 private:
  using Words = Register<std::int64_t>;
  static constexpr int W = Words::lanes;
  static constexpr std::int64_t kCount = 0, kBound = 1, kHead = 2;
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  // Drops all words but the k smallest and at most `slack` others. No two words are equal.
  void condense(std::int64_t slack) {
    std::int64_t* const words = list_ + kHead;
    const std::int64_t count = list_[kCount], bound = at_least_kth(words, count, k_, slack).key;
    std::int64_t kept = 0;
    if constexpr (kCompresses) {
      for (std::int64_t i = 0; i < count; i += W) {
        const auto here = Words::load_first(words + i, count - i);
        const std::uint32_t real = count - i >= W ? (1u << W) - 1 : (1u << (count - i)) - 1;
        const std::uint32_t under = bits(here <= bound) & real;
        compress(words + kept, under, here);
        kept += std::popcount(under);
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t word = words[i];
        words[kept] = word;
        kept += word <= bound;
      }
    }
    list_[kCount] = kept;
    list_[kBound] = bound;
  }

  std::int64_t k_, slack_, most_;
  std::int64_t* list_ = nullptr;  // the number of words, their bound, then the words
  Room<Word<std::int32_t>> room_;
};

// For any k and any types of values and indices: a heap with the worst point at its root.
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

// A list of the kind that the task needs.
class Nearest {
  template <class F>
  auto with(const F& f) {
    return !in_words_ ? f(heap_) : few_ ? f(words_) : f(pool_);
  }
  template <class F>
  auto with(const F& f) const {
    return !in_words_ ? f(heap_) : few_ ? f(words_) : f(pool_);
  }

 public:
  explicit Nearest(const TreeTask& task)
      : task_(task),
        in_words_(!task.double_output && !task.tree->wide_ids),
        few_(task.k <= NearestWords::kMost),
        root_(takes_root(task.metric)),
        words_(task.k),
        pool_(task.k),
        heap_(task.k, task.double_output) {}

  // The size of a list; adjacent lists are aligned like the first.
  std::int64_t bytes() const {
    return with([](const auto& list) {
      return list.size() * static_cast<std::int64_t>(sizeof(typename std::remove_cvref_t<decltype(list)>::Item));
    });
  }

  void use(std::byte* list) {
    with([&]<class List>(List& one) { one.use(reinterpret_cast<typename List::Item*>(list)); });
  }

  void clear() {
    with([](auto& list) { list.clear(); });
  }

  // Offers the points at place, place + 1, ... of the tree whose bits are set, with their sums; not the point `self`.
  // Not inlined, since the search of every metric calls it.
  [[gnu::noinline]] void offer(const double* sums, std::uint64_t lanes, std::int64_t place, std::int64_t self) {
    with([&](auto& list) {
      for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = std::countr_zero(lanes);
        const std::int64_t id = id_at(place + lane);
        if (id != self) list.offer(root_ ? std::sqrt(sums[lane]) : sums[lane], id);
      }
    });
  }

  template <class T>
  T reach(const Reach<T>& reach) const {
    return with([&](const auto& list) { return list.reach(reach); });
  }

  // Writes the list as the answer of a row of the queries, which may change its order.
  [[gnu::noinline]] void write(std::int64_t row) {
    const std::int64_t at = row * task_.k;
    const auto write_values = [&](auto* values) {
      with([&](auto& list) {
        if (task_.tree->wide_ids) list.write(values + at, static_cast<std::int64_t*>(task_.indices) + at);
        else list.write(values + at, static_cast<std::int32_t*>(task_.indices) + at);
      });
    };
    if (task_.double_output) write_values(static_cast<double*>(task_.distances));
    else write_values(static_cast<float*>(task_.distances));
  }

 private:
  std::int64_t id_at(std::int64_t place) const {
    return task_.tree->wide_ids ? static_cast<const std::int64_t*>(task_.tree->ids)[place]
                                : static_cast<const std::int32_t*>(task_.tree->ids)[place];
  }

  const TreeTask& task_;
  const bool in_words_, few_;
  const bool root_;  // whether values are square roots of sums
  NearestWords words_;
  NearestPool pool_;
  NearestHeap heap_;
};

}  // namespace
}  // namespace tonari
