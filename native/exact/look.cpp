#include "exact/look.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tonari {
namespace {

// Comparing balls takes up to an eighth of a look. If they save less, the next looks do not compare them.
constexpr std::int64_t kLeastSpared = 8, kPassed = 15;

std::int64_t count(const std::vector<std::uint8_t>& marks) {
  return std::accumulate(marks.begin(), marks.end(), std::int64_t{0});
}

}  // namespace

void QueriesAsPoints::set(const Kernel& kernel, const PackedQueries& queries, const float* of_low, const float* of_own,
                          std::int64_t count) {
  const auto tiles = static_cast<std::size_t>(queries.tiles);
  const auto width = static_cast<std::ptrdiff_t>(kernel.layout.query_tile);
  tile_norm.assign(tiles, 0.0f), tile_rest.assign(tiles, 0.0f);
  for (std::size_t t = 0; t < tiles; ++t) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t) * width;
    tile_norm[t] = *std::max_element(queries.norm.begin() + at, queries.norm.begin() + at + width);
    tile_rest[t] = *std::max_element(queries.rest.begin() + at, queries.rest.begin() + at + width);
  }
  low.assign(tiles * static_cast<std::size_t>(width), std::numeric_limits<float>::infinity());
  own.assign(low.size(), 0.0f);
  std::copy_n(of_low, count, low.data());
  std::copy_n(of_own, count, own.data());
}

ReverseView QueriesAsPoints::view(const float* threshold) const {
  return {.threshold = threshold,
          .low = low.data(),
          .own = own.data(),
          .tile_norm = tile_norm.data(),
          .tile_rest = tile_rest.data()};
}

PackedQueries Look::open(const Form& form, const RowsView& queries, std::int64_t begin, std::int64_t end) {
  if (form_ == nullptr) return PackedQueries(screen_, form, queries, begin, end);
  return PackedQueries(screen_, form, *form_, queries, begin, end, queries_);
}

void Look::mark(const PackedPoints* points, Task& task) {
  if (form_ == nullptr || points == nullptr) return;
  marks_.assign(static_cast<std::size_t>(task.queries.tiles * (task.group_end - task.group_begin)), 0);
  Task look = task;
  look.points = points->view();
  look.queries = queries_.view();
  look.queries.threshold = task.queries.threshold;
  if (task.reverse.threshold != nullptr) look.reverse = reverse_.view(task.reverse.threshold);
  look.depth = packed_depth(kernel_, form_->columns());
  const std::int64_t pairs = std::ssize(marks_);
  std::int64_t reached = pairs;
  if (pass_ > 0) {
    --pass_;
  } else {
    points->balls().mark(look, queries_, reached_);
    look.marked = reached_.groups.data();
    reached = count(reached_.groups);
    if (reached > pairs - pairs / kLeastSpared) pass_ = kPassed;
  }
  look.marks = marks_.data();
  kernel_.screen(look);
  task.marked = marks_.data();
  looked_.pairs += pairs, looked_.looked += reached, looked_.marked += count(marks_);
}

}  // namespace tonari
