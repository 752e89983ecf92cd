#include "select/order.hpp"

#include "select/float_keys.hpp"

namespace tonari {
namespace {

bool fits_word(const Ranked& item) {
  return static_cast<double>(static_cast<float>(item.key)) == item.key && item.id < (std::int64_t{1} << 32);
}

}  // namespace

void keep_smallest(std::vector<Ranked>& items, std::int64_t k) {
  if (std::ssize(items) <= k) return;
  keep_smallest(items.data(), std::ssize(items), k);
  items.resize(static_cast<std::size_t>(k));
}

void sort_ranked(std::vector<Ranked>& items) {
  const std::int64_t count = std::ssize(items);
  Room<std::uint64_t> all, room;
  std::uint64_t* const words = all.get(count);
  bool fit = true;
  for (std::int64_t j = 0; j < count; ++j) {
    const Ranked& item = items[static_cast<std::size_t>(j)];
    fit &= fits_word(item);
    words[j] = pack_word(float_key(static_cast<float>(item.key)), static_cast<std::int32_t>(item.id));
  }
  if (!fit) return std::sort(items.begin(), items.end());
  sort_words<std::int32_t>(words, count, room);
  std::transform(words, words + count, items.begin(), [](std::uint64_t word) -> Ranked {
    const auto id = static_cast<std::uint32_t>(word_index<std::int32_t>(word));
    return {static_cast<double>(key_float(word_key<std::int32_t>(word))), static_cast<std::int64_t>(id)};
  });
}

}  // namespace tonari
