// The excluded points of a query in the order of a tree: bit `place` is set if the point there is excluded. A whole box
// takes one count for each 64 of its points, and 16 points of a leaf are looked up at once.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "kdtree/radius.hpp"

namespace tonari {
namespace {

class TreeExcluded {
 public:
  // Replaces the points of the last query by those of a list, whose memory must outlive the next call.
  void open(const std::vector<std::int32_t>& places, std::span<const std::int64_t> ids) {
    const std::size_t words = places.size() / 64 + 2;
    const std::int32_t* const at = places.data();
    if (bits_.size() != words || ids_.size() * kCleared > words) {
      bits_.assign(words, 0);
    } else {
      for (const std::int64_t id : ids_) bits_[word_of(at[id])] = 0;
    }
    ids_ = ids;
    std::uint64_t* const bits = bits_.data();
    for (const std::int64_t id : ids) bits[word_of(at[id])] |= std::uint64_t{1} << (at[id] & 63);
  }

  // The points at place, place + 1, ... whose bits are set in `lanes` and that are not excluded.
  std::uint32_t allowed(std::uint32_t lanes, std::int64_t place) const {
    std::uint32_t some;
    std::memcpy(&some, reinterpret_cast<const unsigned char*>(bits_.data()) + place / 8, sizeof some);
    return lanes & ~(some >> (place & 7));
  }

  // The number of excluded points at places [begin, end).
  std::int64_t count(std::int64_t begin, std::int64_t end) const {
    std::int64_t found = 0;
    for (std::int64_t at = begin; at < end; at = (at | 63) + 1) {
      std::uint64_t word = bits_[static_cast<std::size_t>(at) / 64] >> (at & 63);
      if (const std::int64_t left = end - at; left < 64) word &= (std::uint64_t{1} << left) - 1;
      found += std::popcount(word);
    }
    return found;
  }

 private:
  static constexpr std::size_t kCleared = 8;  // words that are cleared together as fast as one of them by itself
  static std::size_t word_of(std::int32_t place) { return static_cast<std::size_t>(place) / 64; }

  std::span<const std::int64_t> ids_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace
}  // namespace tonari
