// The points with the smallest scores for a block of queries, by the screen alone.
//
//   word = key of the score, sign flipped | place of the point        the smallest `count` of a row are its answer
//
// A row collects words until its room is full, then condenses them to those that do not exceed a bound on its count-th
// smallest; the bound becomes the row's threshold (tang2015 III-D, as in exact/row_states.hpp). Unlike in the exact
// search, scores are taken as they are: points are packed with Errors::ignored, and nothing is refined. A row's answer
// depends only on its query and the points that it was compared with, not on their order.
#pragma once

#include <vector>

#include "exact/pack.hpp"
#include "select/keys.hpp"

namespace tonari {

class ScoreBlock {
 public:
  // Finds the `count` points with the smallest scores for every query.
  ScoreBlock(const Kernel& kernel, const Form& form, std::int64_t count);

  void open(const RowsView& queries, std::int64_t begin, std::int64_t end);
  // Compares the queries with all points of a packed run, whose places begin at `first`.
  void screen(const PackedPoints& points, std::int64_t first);
  // Writes the best `wanted` places of a row of the block except `own`, the best first; returns their number.
  std::int64_t finish(std::int64_t row, std::int64_t own, std::int64_t wanted, std::int32_t* places);

 private:
  using Key = std::int32_t;

  void keep(std::int64_t row, float score, std::int64_t place);
  void condense(std::int64_t row);

  const Kernel& kernel_;
  const Form& form_;
  const std::int64_t count_, room_;
  PackedQueries packed_;
  std::vector<Word<Key>> words_;  // room_ words for every row
  std::vector<std::int64_t> held_;
  std::vector<float> thresholds_;
  std::vector<Key> keys_;
};

}  // namespace tonari
