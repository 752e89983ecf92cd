#include "bits/listed.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace tonari {
namespace {

constexpr std::int64_t kBatch = 1024;  // pairs whose bits are counted together
constexpr std::size_t kRoom = 32;      // a list is condensed when it has this many pairs more than 2 k

BitPairs bit_pairs(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx2) return bit_pairs_avx2;
#endif
  (void)isa;
  return bit_pairs_generic;
}

}  // namespace

template <class Index>
void search_listed_bits(Isa isa, const BitLists& lists, std::int64_t begin, std::int64_t end, float* distances,
                        Index* indices) {
  const BitPairs count_pairs = bit_pairs(isa);
  const auto k = static_cast<std::ptrdiff_t>(lists.k);
  std::array<std::int64_t, kBatch> differing, either;
  std::vector<std::uint64_t> keys;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t self = lists.self_ids != nullptr ? lists.self_ids[i] : -1;
    std::uint64_t farthest = std::numeric_limits<std::uint64_t>::max();
    keys.clear();
    for (std::int64_t first = lists.begins[i]; first < lists.ends[i]; first += kBatch) {
      const std::int64_t count = std::min(kBatch, lists.ends[i] - first);
      const std::int64_t* const ids = lists.listed + first;
      count_pairs(lists.queries + i * lists.bytes, lists.points, lists.bytes, ids, count, differing.data(),
                  lists.jaccard ? either.data() : nullptr);
      for (std::int64_t j = 0; j < count; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const float value =
            lists.jaccard ? jaccard_value(differing[at], either[at]) : static_cast<float>(differing[at]);
        const std::uint64_t key = bit_key(value, static_cast<std::uint64_t>(ids[j]));
        if (key > farthest || ids[j] == self) continue;
        keys.push_back(key);
        if (keys.size() < 2 * static_cast<std::size_t>(k) + kRoom) continue;
        std::nth_element(keys.begin(), keys.begin() + (k - 1), keys.end());
        keys.resize(static_cast<std::size_t>(k));
        farthest = keys.back();
      }
    }
    const std::ptrdiff_t found = std::min(k, std::ssize(keys));
    std::partial_sort(keys.begin(), keys.begin() + found, keys.end());
    for (std::ptrdiff_t j = 0; j < k; ++j) {
      const std::uint64_t key = j < found ? keys[static_cast<std::size_t>(j)] : 0;
      *distances++ = j < found ? value_of_bit_key(key) : std::numeric_limits<float>::infinity();
      *indices++ = j < found ? static_cast<Index>(key & kBitIds) : Index{-1};
    }
  }
}

template void search_listed_bits(Isa, const BitLists&, std::int64_t, std::int64_t, float*, std::int32_t*);
template void search_listed_bits(Isa, const BitLists&, std::int64_t, std::int64_t, float*, std::int64_t*);

}  // namespace tonari
