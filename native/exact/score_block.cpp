#include "exact/score_block.hpp"

#include <algorithm>
#include <limits>

#include "select/float_keys.hpp"
#include "select/halving.hpp"
#include "select/order.hpp"

namespace tonari {
namespace {

constexpr float kNoThreshold = std::numeric_limits<float>::max();  // finite, so that padding at infinity never passes
constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr std::size_t kPadding = 64;  // the widest tile of queries
// The room is small, so that the threshold is lowered often and fewer points pass, which saves more time than it takes.
constexpr std::int64_t kLeastRoom = 16;

}  // namespace

ScoreBlock::ScoreBlock(const Kernel& kernel, const Form& form, std::int64_t count)
    : kernel_(kernel), form_(form), count_(count), room_(count + count / 2 + kLeastRoom) {
  keys_.resize(static_cast<std::size_t>(room_));
}

void ScoreBlock::open(const RowsView& queries, std::int64_t begin, std::int64_t end) {
  packed_ = PackedQueries(kernel_, form_, queries, begin, end, Errors::ignored);
  const auto rows = static_cast<std::size_t>(end - begin);
  words_.resize(std::max(words_.size(), rows * static_cast<std::size_t>(room_)));
  held_.assign(rows, 0);
  thresholds_.assign(rows, kNoThreshold);
  thresholds_.resize(rows + kPadding, kNothing);
}

void ScoreBlock::keep(std::int64_t row, float score, std::int64_t place) {
  std::int64_t& held = held_[static_cast<std::size_t>(row)];
  const Word<Key> word = pack_word<Key>(float_key(score), static_cast<std::int32_t>(place));
  if (count_ == 1) {  // the best score is itself the threshold
    Word<Key>& best = words_[static_cast<std::size_t>(row * room_)];
    if (held == 0 || word < best) best = word, held = 1, thresholds_[static_cast<std::size_t>(row)] = score;
    return;
  }
  words_[static_cast<std::size_t>(row * room_ + held)] = word;
  if (++held == room_) condense(row);
}

void ScoreBlock::condense(std::int64_t row) {
  Word<Key>* words = words_.data() + row * room_;
  std::int64_t& held = held_[static_cast<std::size_t>(row)];
  for (std::int64_t j = 0; j < held; ++j) keys_[static_cast<std::size_t>(j)] = word_key<Key>(words[j]);
  const Key bound = at_least_kth(keys_.data(), held, count_, count_ / 8).key;
  std::int64_t kept = 0;
  for (std::int64_t j = 0; j < held; ++j) {  // without branches, since half of them would be mispredicted
    words[kept] = words[j];
    kept += word_key<Key>(words[j]) <= bound;
  }
  if (kept > count_ + count_ / 8) {  // many words equal the bound: those of the first places are kept
    keep_smallest(words, kept, count_);
    kept = count_;
  }
  held = kept;
  thresholds_[static_cast<std::size_t>(row)] = key_float(bound);
}

void ScoreBlock::screen(const PackedPoints& points, std::int64_t first) {
  struct Keeper {
    ScoreBlock& block;
    std::int64_t first;
  } keeper{*this, first};
  QueriesView queries = packed_.view();
  queries.threshold = thresholds_.data();
  kernel_.screen({.points = points.view(),
                  .queries = queries,
                  .reverse = {},
                  .group_begin = 0,
                  .group_end = points.groups(),
                  .depth = packed_depth(kernel_, form_.d),
                  .keep =
                      [](void* context, std::int64_t row, float score, float, std::int64_t point) {
                        const Keeper& self = *static_cast<Keeper*>(context);
                        self.block.keep(row, score, self.first + point);
                      },
                  .keep_reverse = nullptr,
                  .context = &keeper});
}

std::int64_t ScoreBlock::finish(std::int64_t row, std::int64_t own, std::int64_t wanted, std::int32_t* places) {
  Word<Key>* words = words_.data() + row * room_;
  std::int64_t held = held_[static_cast<std::size_t>(row)];
  if (held > count_) {
    keep_smallest(words, held, count_);
    held = count_;
  }
  std::sort(words, words + held, Smaller{});
  std::int64_t written = 0;
  for (std::int64_t j = 0; j < held && written < wanted; ++j) {
    places[written] = word_index<Key>(words[j]);
    written += places[written] != own;
  }
  return written;
}

}  // namespace tonari
