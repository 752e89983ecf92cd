#include "exact/row_block.hpp"

#include <algorithm>
#include <cmath>

namespace tonari {
namespace {

constexpr double kMore = 0x1p-20;        // relative margin of a sum, far larger than its rounding errors
constexpr std::int64_t kFirstRoom = 32;  // a row is first condensed when it has this many survivors more than 2 k

}  // namespace

RowBlock::RowBlock(const Kernel& kernel, const Form& form, const Form* look, const RowsView& queries,
                   const RowsView& points, const SearchSpec& spec, Isa isa)
    : kernel_(kernel),
      form_(form),
      queries_(queries),
      sketched_(spec.sketch.count),
      sampled_(spec.sample_rank > 0),
      look_(kernel, look),
      states_(form, queries, points, spec, isa) {}

void RowBlock::open(std::int64_t begin, std::int64_t end, const std::int64_t* places, const float* asked) {
  packed_ = look_.open(form_, queries_, begin, end);
  states_.open(begin, end - begin, kFirstRoom);
  for (std::int64_t row = 0; row < end - begin; ++row) {
    const auto at = static_cast<std::size_t>(row);
    states_.start(row, packed_.shift[at], packed_.beyond[at]);
    if (places == nullptr) continue;
    states_.expect(row, places[begin + row], asked + (begin + row) * sketched_, 1, scratch_);
  }
}

void RowBlock::screen(const PackedPoints& points, bool looks, std::int64_t group_begin, std::int64_t group_end,
                      std::int64_t stride, bool take_stride, const std::uint8_t* marks) {
  const bool sampling = stride != 0 && take_stride && sampled_;
  struct Keeper {
    RowStates& states;
    Scratch& scratch;
    std::int64_t base;
    bool sampling;
  } keeper{states_, scratch_, points.base(), sampling};
  QueriesView queries = packed_.view();
  queries.threshold = states_.thresholds();
  Task task{.points = points.view(),
            .queries = queries,
            .reverse = {},
            .group_begin = group_begin,
            .group_end = group_end,
            .stride = stride,
            .take_stride = take_stride,
            .marked = marks,
            .depth = packed_depth(kernel_, form_.columns()),
            .keep =
                [](void* context, std::int64_t row, float lower, float upper, std::int64_t point) {
                  Keeper& self = *static_cast<Keeper*>(context);
                  self.states.keep(row, {lower, upper, self.base + point}, self.sampling, self.scratch);
                },
            .keep_reverse = nullptr,
            .context = &keeper};
  if (!sampling) look_.mark(looks ? points.contracted() : nullptr, task);
  kernel_.screen(task);
  // Rows beyond the screen's range are compared with every point in the second pass.
  if (stride != 0 && take_stride) return;
  const std::int64_t size = kernel_.layout.point_group;
  for (std::int64_t row = 0; row < states_.count(); ++row) {
    if (!states_.is_beyond(row)) continue;
    states_.search_exactly(row, points.base() + group_begin * size,
                           points.base() + std::min(group_end * size, points.count()), scratch_);
  }
}

double RowBlock::reach(std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  const double threshold = states_.thresholds()[at], beside = is_angular(form_.metric) ? 2.0 : packed_.shift[at];
  return std::max(threshold + beside + kMore * (std::fabs(threshold) + beside), 0.0);
}

}  // namespace tonari
