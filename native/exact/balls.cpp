#include "exact/balls.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tonari {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kMore = 0x1p-20;  // relative margin of a sum, far larger than its rounding errors

}  // namespace

Balls::Balls(const Kernel& kernel, const Form& form, std::int64_t count)
    : kernel_(kernel),
      form_(form),
      points_(count),
      centres_(kernel, form.columns(), (count + kernel.layout.point_group - 1) / kernel.layout.point_group),
      radius_(static_cast<std::size_t>(centres_.count), 0.0f),
      square_(radius_.size(), 0.0f),
      writer_(kernel, form.columns(), pack_loops(kernel.isa)) {}

void Balls::add(const ScreenRows& rows, std::int64_t count) {
  const std::int64_t width = padded(form_.columns()), place = added_ % centres_.group;
  means_.resize(static_cast<std::size_t>(centres_.group * width));
  double* const mean = means_.data() + place * width;
  std::fill_n(mean, width, 0.0);
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t r = 0; r < count; ++r) {
    if (is_beyond(form_, rows.terms(r))) {
      least = -static_cast<double>(kHuge);
      continue;
    }
    const double* const row = rows.row(r);
    values_.insert(values_.end(), row, row + width);
    rows_.push_back({place, rows.terms(r).error});
    least = std::min(least, point_term(form_, rows.terms(r)));
    for (std::int64_t i = 0; i < width; ++i) mean[i] += row[i] / static_cast<double>(count);
  }
  least_.push_back(least);
  ++added_;
  if (added_ % centres_.group != 0 && added_ != centres_.count) return;
  pack_cell();
  rows_.clear(), values_.clear(), least_.clear();
  if (added_ == centres_.count) values_ = {}, means_ = {};
}

void Balls::pack_cell() {
  const PackLoops& loops = pack_loops(kernel_.isa);
  const std::int64_t width = padded(form_.columns()), held = std::ssize(least_), first = added_ - held;
  const double gamma = accumulation_error(kernel_, form_.columns());
  for (std::int64_t g = 0; g < held; ++g) writer_.expect(means_.data() + g * width);
  writer_.begin(centres_, first / centres_.group);
  std::size_t next = 0;
  for (std::int64_t g = 0; g < held; ++g) {
    const double* const centre = writer_.write(centres_, first + g, means_.data() + g * width);
    double radius = 0, length = 0;
    for (; next < rows_.size() && rows_[next].group == g; ++next) {
      const double* const row = values_.data() + static_cast<std::ptrdiff_t>(next) * width;
      const Norms norms = loops.measure(form_.metric, row, centre, form_.columns());
      radius = std::max(radius, (norms.difference + rows_[next].error) * (1 + kMore));
      length = norms.rounded;
    }
    const double least = least_[static_cast<std::size_t>(g)];
    if (least <= -static_cast<double>(kHuge)) {
      centres_.let_pass(first + g);
      continue;
    }
    const double square = length * length, beside = is_angular(form_.metric) ? 1.0 : 0.0;
    const double term = is_product(form_.metric) ? least : square - radius * radius - beside;
    const double own = (gamma + kMore) * (std::fabs(term) + square + radius * radius + beside) + kTiny;
    centres_.bound(first + g, term, own, 2 * radius, 2 * length * (1 + kMore) + kTiny);
    radius_[static_cast<std::size_t>(first + g)] = round_up(radius);
    square_[static_cast<std::size_t>(first + g)] = round_down(square * (1 - kMore));
  }
}

void Balls::mark(const Task& look, const PackedQueries& queries, Marks& marks) const {
  const std::int64_t cell = centres_.group, tiles = look.queries.tiles;
  Task task = look;
  task.points = centres_.view(0);
  task.group_begin = look.group_begin / cell, task.group_end = (look.group_end + cell - 1) / cell;
  task.stride = 0;
  task.marks = nullptr;
  const std::int64_t first = task.group_begin * cell, stride = (task.group_end - task.group_begin) * cell;
  marks.centres.assign(static_cast<std::size_t>(tiles * stride), 0);
  task.point_marks = {.marks = marks.centres.data(), .first = first, .stride = stride};
  if (!is_product(form_.metric)) {
    marks.reach.assign(queries.shift.size(), 0.0f);
    for (std::size_t q = 0; q < static_cast<std::size_t>(queries.count); ++q) {
      const double threshold = load_threshold(look.queries.threshold + q);
      const double beside = is_angular(form_.metric) ? 2.0 : queries.shift[q];
      const double square = threshold + beside + kMore * (std::fabs(threshold) + beside);
      if (square > 0) marks.reach[q] = round_up(std::sqrt(square));
    }
    task.queries.norm = marks.reach.data();
  }
  if (look.reverse.threshold != nullptr) {
    thresholds(look, marks);
    task.reverse.threshold = marks.threshold.data();
    if (!is_product(form_.metric)) {
      marks.no_norm.assign(static_cast<std::size_t>(tiles), 0.0f);
      task.reverse.tile_norm = marks.no_norm.data();
    }
  }
  kernel_.screen(task);
  const std::int64_t range = look.group_end - look.group_begin;  // groups of the range; a cell may have others, too
  marks.groups.resize(static_cast<std::size_t>(tiles * range));
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const std::uint8_t* const from = marks.centres.data() + tile * stride + (look.group_begin - first);
    std::copy_n(from, range, marks.groups.data() + tile * range);
  }
}

// The thresholds of centres if the points of groups are queries too, so that rows of the tile may survive for them.
// If a row of the tile is the point, and s is the largest reach of the group's points, the test is
//   -2 <f(q), c> + a(q') <= (r + s)^2 - |c|^2, less 1 for angles;    of products: t + 2 r |q'|.
void Balls::thresholds(const Task& look, Marks& marks) const {
  const std::int64_t size = centres_.group;
  marks.threshold.assign(centres_.low.size(), -kInfinity);
  for (std::int64_t group = look.group_begin; group < look.group_end; ++group) {
    const auto at = static_cast<std::size_t>(group);
    double most = -kInfinity;
    for (std::int64_t p = group * size; p < std::min((group + 1) * size, points_); ++p) {
      double t = load_threshold(look.reverse.threshold + p);
      if (!is_product(form_.metric)) {
        const double term = is_angular(form_.metric) ? 2.0 : static_cast<double>(look.points.low[p]);
        t += term + look.points.error_own[p] + kMore * (std::fabs(t) + std::fabs(term));
      }
      most = std::max(most, t);
    }
    if (is_product(form_.metric)) {
      marks.threshold[at] = round_up(most);
      continue;
    }
    if (!(most > 0)) continue;
    const double reach = std::sqrt(most) + radius_[at], square = square_[at];
    const double beside = is_angular(form_.metric) ? 1.0 : 0.0;
    marks.threshold[at] = round_up(reach * reach - square - beside + kMore * (reach * reach + square + beside));
  }
}

std::int64_t Balls::bytes() const {
  return centres_.bytes() + static_cast<std::int64_t>((radius_.size() + square_.size()) * sizeof(float));
}

}  // namespace tonari
