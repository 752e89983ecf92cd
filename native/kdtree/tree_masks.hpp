// The rows of a mask for some queries in the order of a tree, where the points of a leaf or of a box are adjacent: bit i
// of a point's word says whether query i may find it. A run of points is looked up by one comparison, instead of one
// load at a random place for each of them.
//
// Words are made in two steps. Many points of all queries are transposed at once, in registers, without moving a lane:
// a register has bytes of consecutive points, and so each group of words is interleaved. Every word is then copied from
// its place in such a group to its place in the tree.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/allowed.hpp"
#include "kdtree/search.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

class TreeMasks {
  static constexpr int W = kTreeWidth;
  using Words = Vec<std::int32_t, W>;

 public:
  static constexpr int kQueries = 32;

  // Reads the rows of up to kQueries queries; rules.ids must be null.
  template <class QueryAt>
  void fill(const AllowedPairs& rules, const TreeView& tree, std::int64_t points, int queries,
            const QueryAt& query_at) {
    rules_ = &rules;
    for (int i = 0; i < kQueries; ++i) {
      rows_[i] = i < queries ? rules.mask + rules.row_of(query_at(i)) * rules.mask_stride : nullptr;
    }
    by_id_.resize(static_cast<std::size_t>((rules.n + kGroup - 1) / kGroup * kGroup));
    by_place_.resize(static_cast<std::size_t>(points + W));
    if (rules.packed) {
      for (std::int64_t first = 0; first < rules.n; first += W * 32) transpose_bits(first);
    } else {
      for (std::int64_t first = 0; first < rules.n; first += W * 4) transpose_bytes(first);
    }
    const auto copy_all = [&](const auto* ids) {
      if (rules.packed) copy<5>(ids, points);
      else copy<2>(ids, points);
    };
    if (tree.wide_ids) copy_all(static_cast<const std::int64_t*>(tree.ids));
    else copy_all(static_cast<const std::int32_t*>(tree.ids));
  }

  // The points at place, place + 1, ... whose bits are set in `lanes` and that a query may find.
  std::uint32_t allowed(std::uint32_t lanes, std::int64_t place, int query) const {
    const Words bit = static_cast<std::int32_t>(1u << query);
    return lanes & bits((Words::load(by_place_.data() + place) & bit) == bit);
  }

 private:
  static constexpr std::int64_t kGroup = W * 32;  // points of packed rows in one register for each query
  static constexpr std::int64_t kAhead = 512;     // bytes of a row that are loaded in advance

  // The bytes of a query for the points of a register; zeros after the end of its row.
  Words load(int query, std::int64_t byte) const {
    const std::uint8_t* const row = rows_[query];
    const std::int64_t left = rules_->mask_stride - byte;
    if (row == nullptr || left <= 0) return Words(0);
    if (left >= std::int64_t{sizeof(std::int32_t) * W}) {
      __builtin_prefetch(row + std::min(byte + kAhead, rules_->mask_stride - 1));
      return Words::load(reinterpret_cast<const std::int32_t*>(row + byte));
    }
    std::int32_t tail[W] = {};
    std::memcpy(tail, row + byte, static_cast<std::size_t>(left));
    return Words::load(tail);
  }

  // Of `first` and the next 64 points. Point 4 l + b has its word at 16 b + l: a lane has four points of a query.
  void transpose_bytes(std::int64_t first) {
    Words seen = 0, eight[4];
    for (int group = 0; group < 4; ++group) {
      Words sum = 0;
      for (int i = 0; i < 8; ++i) {
        const Words row = load(8 * group + i, first);
        seen = seen | row;
        sum = sum | row << i;
      }
      eight[group] = sum;
    }
    std::int32_t* const to = by_id_.data() + first;
    if (bits((seen & Words(~0x01010101)) == Words(0)) == 0xFFFF) {
      const Words low = 255;
      for (int b = 0; b < 4; ++b) {
        Words word = eight[0] >> (8 * b) & low;
        for (int group = 1; group < 4; ++group) word = word | (eight[group] >> (8 * b) & low) << (8 * group);
        word.store(to + W * b);
      }
      return;
    }
    for (std::int64_t j = 0; j < 4 * W; ++j) {  // other bytes than 0 and 1
      std::uint32_t word = 0;
      for (int i = 0; i < kQueries && first + j < rules_->n; ++i) {
        word |= static_cast<std::uint32_t>(rows_[i] != nullptr && rows_[i][first + j] != 0) << i;
      }
      to[W * (j & 3) + (j >> 2)] = static_cast<std::int32_t>(word);
    }
  }

  // Of `first` and the next 512 points. Point 32 l + b has its word at 16 b + l: a lane has 32 points of a query.
  void transpose_bits(std::int64_t first) {
    Words row[32];
    for (int i = 0; i < 32; ++i) row[i] = load(i, first / 8);
    const auto swap = [&row]<int BY>(std::int32_t keep) {
      const Words low = keep;
      for (int i = 0; i < 32; i = ((i | BY) + 1) & ~BY) {
        const Words moved = ((row[i] >> BY) ^ row[i | BY]) & low;
        row[i | BY] = row[i | BY] ^ moved;
        row[i] = row[i] ^ moved << BY;
      }
    };
    swap.template operator()<16>(0x0000FFFF);
    swap.template operator()<8>(0x00FF00FF);
    swap.template operator()<4>(0x0F0F0F0F);
    swap.template operator()<2>(0x33333333);
    swap.template operator()<1>(0x55555555);
    for (int i = 0; i < 32; ++i) row[i].store(by_id_.data() + first + W * i);
  }

  // A lane of a transposed group has 2 ** BITS points.
  template <int BITS, class Id>
  void copy(const Id* __restrict ids, std::int64_t points) {
    using Number = std::make_unsigned_t<Id>;
    constexpr Number lane = (1 << BITS) - 1, inside = W * lane + W - 1;
    const std::int32_t* __restrict words = by_id_.data();
    std::int32_t* __restrict to = by_place_.data();
    for (std::int64_t place = 0; place < points; ++place) {
      const Number id = static_cast<Number>(ids[place]);
      to[place] = words[static_cast<Id>((id & ~inside) | (id & lane) * W | (id >> BITS & (W - 1)))];
    }
  }

  const AllowedPairs* rules_ = nullptr;
  const std::uint8_t* rows_[kQueries] = {};
  std::vector<std::int32_t> by_id_, by_place_;
};

}  // namespace
}  // namespace tonari
