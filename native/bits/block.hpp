// A block of queries among rows of bits: the k nearest points of each, or all within a limit.
//
// A returned value is a float32. A number of bits, at most 2^24, is represented exactly; for jaccard, the quotient of
// two whole numbers in float64 is rounded to float32. No value is negative, so the bits of a value have the order of
// the value, and
//
//     key  =  bits of the value << 33 | point
//
// orders pairs by (returned value, index) in one comparison.
#pragma once

#include <cstdint>
#include <vector>

#include "bits/scan.hpp"
#include "bits/value.hpp"

namespace tonari {

// Packed points (bits/pack.hpp); or unpacked rows, which a scan packs piece by piece: faster if points are read once.
struct BitPoints {
  const std::uint32_t* words = nullptr;
  const std::int32_t* counts = nullptr;
  const std::uint8_t* rows = nullptr;  // the unpacked rows; used if words is null
  std::int64_t n = 0;
};

class BitBlock {
 public:
  // For `count` queries of `bytes` bytes each. limits: for each query, the largest value that it finds; null: find the
  // k nearest points. own: null, or for each query a point that it must not find. lists: whether pairs within the
  // limits are listed, not only counted.
  BitBlock(Isa isa, bool jaccard, const BitPoints& points, const std::uint8_t* queries, std::int64_t count,
           std::int64_t bytes, std::int64_t k, const float* limits, const std::int64_t* own, bool lists);

  // Compares with groups [begin, end) of the points. Calls come in ascending order.
  void scan(std::int64_t begin, std::int64_t end);
  // Adds the results of a block of the same queries among other points.
  void absorb(BitBlock& other);

  // The number of points found so far for a query: all within its limit, or the nearest ones, at most k.
  std::int64_t found(std::int64_t query) const;
  // Writes the lists of all queries one after another, each nearest first, and clears them.
  template <class Index>
  void write(float* distances, Index* indices);

  std::int64_t count() const { return static_cast<std::int64_t>(found_.size()); }

 private:
  void scan_packed(const std::uint32_t* words, const std::int32_t* counts, std::int64_t first_point, std::int64_t begin,
                   std::int64_t end);
  void keep(std::int64_t query, std::int64_t point, std::int32_t counted);
  void condense(std::size_t query);
  void limit_to(std::size_t query, float value, bool closed);

  BitScan scan_;
  bool jaccard_;
  BitPoints points_;
  std::int64_t bytes_, k_;
  const std::int64_t* own_;
  bool nearest_, lists_;
  std::vector<std::uint32_t> words_;
  std::vector<std::int32_t> counts_, limits_;
  std::vector<float> scales_;
  std::vector<std::uint64_t> farthest_;  // for each query, the largest key that is kept
  std::vector<std::int64_t> found_;
  std::vector<std::vector<std::uint64_t>> keys_;
  const std::int32_t* point_counts_ = nullptr;  // bits of the points of the current scan, from point first_ on
  std::int64_t first_ = 0;
};

}  // namespace tonari
