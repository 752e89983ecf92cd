#include "bits/block.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bits/pack.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kSlabWords = 1 << 13;  // words that a scan packs at a time: 32 KiB stay in the first caches
constexpr std::size_t kRoom = 32;             // a list is condensed when it has this many pairs more than 2 k
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

// The Jaccard distance of two rows, from the number of bits that are set in both and the number set in at least one.
float jaccard_of(std::int64_t shared, std::int64_t together) {
  return jaccard_value(together - 2 * shared, together - shared);
}

// The limit L: fewer than L differing bits give a value of at most `value`, or below `value` if not `closed`.
std::int32_t hamming_limit(float value, bool closed) {
  if (!(value >= 0)) return 0;
  if (value > static_cast<float>(kMostBits)) return std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(closed ? std::floor(value) + 1 : std::ceil(value));
}

// The scale of the condition that a pair shares enough bits. With s shared bits, and S = |q| + |x| bits in all,
//     (S - 2 s) / (S - s) <= t   is   s >= S (1 - t) / (2 - t)     for t <= 1.
// Roundings of the value and of both sides in float32 are below 2^-21 in all; 1e-6 of each side covers them.
float jaccard_scale(float value, bool closed) {
  constexpr float none = std::numeric_limits<float>::infinity();  // inf * 0 is NaN, which is not <= either
  constexpr double slack = 1e-6;
  if (!(value >= 0) || (value == 0 && !closed)) return none;
  if (value >= 1 && closed) return 0.0f;
  const double t = std::min(1.0, static_cast<double>(value) * (1 + slack));
  const double scale = (1 - slack) * (1 - t) / (2 - t);
  return std::max(static_cast<float>(scale), 1e-30f);  // below a value of 1, rows share a bit if any is set
}

}  // namespace

BitBlock::BitBlock(Isa isa, bool jaccard, const BitPoints& points, const std::uint8_t* queries, std::int64_t count,
                   std::int64_t bytes, std::int64_t k, const float* limits, const std::int64_t* own, bool lists)
    : scan_(bit_scan(isa)),
      jaccard_(jaccard),
      points_(points),
      bytes_(bytes),
      k_(k),
      own_(own),
      nearest_(limits == nullptr),
      lists_(lists),
      words_(static_cast<std::size_t>(count * bit_words(bytes))),
      counts_(static_cast<std::size_t>(count)),
      limits_(static_cast<std::size_t>(count)),
      scales_(static_cast<std::size_t>(count)),
      farthest_(static_cast<std::size_t>(count), kAll),
      found_(static_cast<std::size_t>(count)),
      keys_(static_cast<std::size_t>(count)) {
  copy_bits(queries, count, bytes, words_.data(), counts_.data());
  for (std::size_t query = 0; query < keys_.size(); ++query) {
    const float value = nearest_ ? std::numeric_limits<float>::infinity() : limits[query] + 0.0f;  // never -0.0
    limit_to(query, value, true);
    if (!nearest_) farthest_[query] = value >= 0 ? bit_key(value, kBitIds) : 0;
  }
}

void BitBlock::limit_to(std::size_t query, float value, bool closed) {
  if (jaccard_) {
    scales_[query] = jaccard_scale(value, closed);
  } else {
    limits_[query] = hamming_limit(value, closed);
  }
}

void BitBlock::scan(std::int64_t begin, std::int64_t end) {
  if (points_.words != nullptr) return scan_packed(points_.words, points_.counts, 0, begin, end);
  const std::int64_t group_words = bit_words(bytes_) * kBitLanes;
  const std::int64_t step = std::max<std::int64_t>(1, kSlabWords / group_words);  // number of groups per step
  std::vector<std::uint32_t> words(static_cast<std::size_t>(std::min(step, end - begin) * group_words));
  std::vector<std::int32_t> counts(jaccard_ ? static_cast<std::size_t>(step * kBitLanes) : 0);
  std::int32_t* const counted = jaccard_ ? counts.data() : nullptr;
  for (std::int64_t group = begin; group < end; group += step) {
    const std::int64_t here = std::min(step, end - group), first = group * kBitLanes;
    pack_bits(points_.rows + first * bytes_, std::min(points_.n - first, here * kBitLanes), bytes_, words.data(),
              counted);
    scan_packed(words.data(), counted, first, 0, here);
  }
}

void BitBlock::scan_packed(const std::uint32_t* words, const std::int32_t* counts, std::int64_t first_point,
                           std::int64_t begin, std::int64_t end) {
  point_counts_ = counts;
  first_ = first_point;
  scan_({.words = words,
         .counts = counts,
         .width = bit_words(bytes_),
         .group_begin = begin,
         .group_end = end,
         .first_point = first_point,
         .queries = words_.data(),
         .query_counts = counts_.data(),
         .query_count = count(),
         .shared = jaccard_,
         .limits = limits_.data(),
         .scales = scales_.data(),
         .keep = [](void* self, std::int64_t query, std::int64_t point,
                    std::int32_t counted) { static_cast<BitBlock*>(self)->keep(query, point, counted); },
         .context = this});
}

void BitBlock::keep(std::int64_t query, std::int64_t point, std::int32_t counted) {
  if (point >= points_.n || (own_ != nullptr && own_[query] == point)) return;
  const auto row = static_cast<std::size_t>(query);
  const float value = jaccard_ ? jaccard_of(counted, std::int64_t{counts_[row]} + point_counts_[point - first_])
                               : static_cast<float>(counted);
  const std::uint64_t key = bit_key(value, static_cast<std::uint64_t>(point));
  if (key > farthest_[row]) return;
  ++found_[row];
  if (!lists_) return;
  keys_[row].push_back(key);
  if (nearest_ && keys_[row].size() >= 2 * static_cast<std::size_t>(k_) + kRoom) condense(row);
}

// Keeps the k nearest pairs of a full list. Later points have larger indices, so only those nearer than the k-th count.
void BitBlock::condense(std::size_t query) {
  auto& keys = keys_[query];
  const auto k = static_cast<std::ptrdiff_t>(k_);
  if (static_cast<std::ptrdiff_t>(keys.size()) <= k) return;
  std::nth_element(keys.begin(), keys.begin() + (k - 1), keys.end());
  keys.resize(static_cast<std::size_t>(k));
  farthest_[query] = keys.back();
  limit_to(query, value_of_bit_key(keys.back()), false);
}

void BitBlock::absorb(BitBlock& other) {
  for (std::size_t query = 0; query < keys_.size(); ++query) {
    keys_[query].insert(keys_[query].end(), other.keys_[query].begin(), other.keys_[query].end());
    found_[query] += other.found_[query];
    std::vector<std::uint64_t>().swap(other.keys_[query]);
    if (nearest_) condense(query);
  }
}

std::int64_t BitBlock::found(std::int64_t query) const {
  const auto row = static_cast<std::size_t>(query);
  return nearest_ ? std::min(k_, static_cast<std::int64_t>(keys_[row].size())) : found_[row];
}

template <class Index>
void BitBlock::write(float* distances, Index* indices) {
  for (std::size_t query = 0; query < keys_.size(); ++query) {
    if (nearest_) condense(query);
    auto& keys = keys_[query];
    std::sort(keys.begin(), keys.end());
    for (const std::uint64_t key : keys) {
      *distances++ = value_of_bit_key(key);
      *indices++ = static_cast<Index>(key & kBitIds);
    }
    std::vector<std::uint64_t>().swap(keys);
  }
}

template void BitBlock::write(float*, std::int32_t*);
template void BitBlock::write(float*, std::int64_t*);

}  // namespace tonari
