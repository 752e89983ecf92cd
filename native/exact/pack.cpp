#include "exact/pack.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "exact/pack_loops.hpp"

namespace tonari {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kOneRegister = 64;  // bytes, which the screen may read behind the last group
constexpr double kTiny = 0x1p-100;         // absolute floor of every bound

// The smallest float32 that is at least `x`; kHuge where there is no useful one (overflow, NaN).
float round_up(double x) {
  if (!(x < static_cast<double>(kHuge))) return kHuge;
  float rounded = static_cast<float>(x);
  if (static_cast<double>(rounded) < x) rounded = std::nextafter(rounded, kInfinity);
  return rounded;
}

float round_down(double x) {
  float rounded = static_cast<float>(x);
  if (static_cast<double>(rounded) > x) rounded = std::nextafter(rounded, -kInfinity);
  return rounded;
}

int element_size(Precision precision) {
  return precision == Precision::int8 ? 1 : precision == Precision::bfloat16 ? 2 : 4;
}

// Writes the elements of one row into packed memory (see Layout). Those beyond d are zeros.
class RowWriter {
 public:
  RowWriter(const Kernel& kernel, std::int64_t d, bool queries)
      : size_(element_size(kernel.precision)),
        run_bytes_(kernel.layout.run * size_),
        depth_(packed_depth(kernel, d)),
        rows_(kernel.layout.tile_rows != 0 ? kernel.layout.tile_rows
              : queries                    ? kernel.layout.query_tile
                                           : kernel.layout.point_group),
        interleaved_(queries && kernel.layout.tile_rows != 0),
        elements_(static_cast<std::size_t>(std::max(run_bytes_ * depth_, padded(d) * size_))) {}

  std::byte* elements() { return elements_.data(); }

  void write(std::byte* packed, std::int64_t row) const {
    const std::int64_t block = row / rows_, r = row % rows_;
    std::byte* cells = packed + block * depth_ * rows_ * run_bytes_;
    if (interleaved_ || run_bytes_ == 4) {
      // The matrix unit's second operand: each 32-bit piece of a query has a tile row of its own. Runs of 32 bits are
      // such pieces themselves.
      const std::byte* element = elements_.data();  // by name: the compiler cannot rule out that a write changes it
      const std::int64_t pieces = depth_ * run_bytes_ / 4, apart = rows_ * 4;
      for (std::int64_t j = 0; j < pieces; ++j) std::memcpy(cells + j * apart + r * 4, element + j * 4, 4);
      return;
    }
    for (std::int64_t k = 0; k < depth_; ++k) {
      std::memcpy(cells + (k * rows_ + r) * run_bytes_, elements_.data() + k * run_bytes_,
                  static_cast<std::size_t>(run_bytes_));
    }
  }

 private:
  std::int64_t size_, run_bytes_, depth_, rows_;
  bool interleaved_;
  std::vector<std::byte> elements_;
};

// The value of one int8 step for some rows. Any step is correct, since its error is measured; this one is exact if the
// rows are the packed bytes themselves, else the finest that fits.
double int8_step(const Span& span, double limit) {
  if (span.whole && span.lowest >= -limit - 1 && span.highest <= limit) return 1.0;
  return span.largest > kTiny ? static_cast<double>(static_cast<float>(span.largest / limit)) : 1.0;
}

// Rows as the screen sees them: read, converted to the form and, where it is contracted, contracted.
class ScreenRows {
 public:
  ScreenRows(const Form& form, const PackLoops& loops, std::int64_t most)
      : form_(form),
        loops_(loops),
        width_(padded(form.columns())),
        rows_(static_cast<std::size_t>(most * padded(form.d))),
        contracted_(form.contracts() ? static_cast<std::size_t>(most * width_) : 0),
        terms_(static_cast<std::size_t>(most)) {}

  void read(const RowsView& rows, std::int64_t first, std::int64_t count) {
    for (std::int64_t r = 0; r < count; ++r) {
      terms_[static_cast<std::size_t>(r)] = loops_.read(form_, rows, first + r, rows_.data() + r * padded(form_.d));
    }
    if (form_.contracts()) loops_.contract(form_, rows_.data(), count, terms_.data(), contracted_.data());
  }
  const RowTerms& terms(std::int64_t r) const { return terms_[static_cast<std::size_t>(r)]; }
  const double* row(std::int64_t r) const {
    return (form_.contracts() ? contracted_.data() : rows_.data()) + r * width_;
  }
  // The norms of a row that was rounded.
  Norms norms(std::int64_t r, const double* rounded) const {
    Norms found = loops_.measure(form_.metric, row(r), rounded, form_.columns());
    found.exact += terms(r).error, found.difference += terms(r).error;
    return found;
  }

 private:
  const Form& form_;
  const PackLoops& loops_;
  std::int64_t width_;
  AlignedVector<double> rows_, contracted_;
  std::vector<RowTerms> terms_;
};

Span joined(const Span& a, const Span& b) {
  return {.largest = std::max(a.largest, b.largest),
          .whole = a.whole && b.whole,
          .lowest = std::min(a.lowest, b.lowest),
          .highest = std::max(a.highest, b.highest)};
}

}  // namespace

int packed_depth(const Kernel& kernel, std::int64_t d) {
  return static_cast<int>((d + kernel.layout.run - 1) / kernel.layout.run);
}

PackedPoints::PackedPoints(const Kernel& kernel, const Form& form, const RowsView& points, std::int64_t begin,
                           std::int64_t end, Errors errors)
    : kernel_(&kernel),
      base_(begin),
      count_(end - begin),
      groups_((end - begin + kernel.layout.point_group - 1) / kernel.layout.point_group),
      data_bytes_(groups_ * kernel.layout.point_group * packed_depth(kernel, form.columns()) * kernel.layout.run *
                  element_size(kernel.precision)) {
  // One register more than the groups need, since a group's errors are read a register at a time.
  const auto places = static_cast<std::size_t>(groups_ * kernel.layout.point_group + 16);
  const auto groups = static_cast<std::size_t>(groups_);
  data_ = allocate(data_bytes_ + kOneRegister);
  low_.assign(places, kInfinity);
  error_query_.assign(places, 0), error_rest_.assign(places, 0), error_own_.assign(places, 0);
  group_error_query_.assign(groups, 0), group_error_rest_.assign(groups, 0);
  if (kernel.precision == Precision::int8) group_scale_.assign(groups, 0), correction_.assign(places, 0);
  const PackLoops& loops = pack_loops(kernel.isa);
  const std::int64_t columns = form.columns();
  ScreenRows rows(form, loops, kernel.layout.point_group);
  AlignedVector<double> rounded(static_cast<std::size_t>(padded(columns)));
  RowWriter writer(kernel, columns, false);
  const double gamma = accumulation_error(kernel, columns);
  for (std::int64_t group = 0; group < groups_; ++group) {
    const std::int64_t first = group * kernel.layout.point_group;
    const std::int64_t last = std::min(first + kernel.layout.point_group, count_);
    rows.read(points, base_ + first, last - first);
    double step = 1.0;
    if (kernel.precision == Precision::int8) {
      Span span;
      for (std::int64_t p = first; p < last; ++p) {
        if (is_beyond(form, rows.terms(p - first))) continue;
        span = joined(span, loops.span(rows.row(p - first), columns));
      }
      step = int8_step(span, 127);
      group_scale_[static_cast<std::size_t>(group)] = static_cast<float>(step);
    }
    for (std::int64_t p = first; p < last; ++p) {
      const auto at = static_cast<std::size_t>(p);
      const double* row = rows.row(p - first);
      const RowTerms& term = rows.terms(p - first);
      if (is_beyond(form, term)) {  // always survives, so that only its exact value judges it
        low_[at] = -kHuge;
        error_own_[at] = kHuge;
        continue;
      }
      if (kernel.precision == Precision::int8) {
        const std::int32_t sum = loops.round_int8(row, columns, step, 127, 0, writer.elements(), rounded.data());
        correction_[at] = -kernel.layout.query_offset * sum;
      } else {
        loops.round(kernel.precision, row, columns, 1.0, writer.elements(), rounded.data());
      }
      writer.write(data_.get(), p);
      if (errors == Errors::measured) {
        keep_errors(form, p, gamma, point_term(form, term), rows.norms(p - first, rounded.data()));
      } else {
        low_[at] = static_cast<float>(point_term(form, term));
      }
    }
  }
}

void PackedPoints::keep_errors(const Form& form, std::int64_t point, double gamma, double term, const Norms& norms) {
  const auto at = static_cast<std::size_t>(point), group = at / static_cast<std::size_t>(kernel_->layout.point_group);
  double own = 0, query = 0, rest = 0;
  if (is_elementwise(form.metric)) {
    own = (norms.difference + gamma * norms.rounded) * (1 + gamma + 0x1p-20) + kTiny;
    query = 1;
  } else {
    own = gamma * std::fabs(term) + kTiny;
    query = 2 * norms.difference;
    const double centre = std::sqrt(form.centre_square);
    // Exact values are rounded relative to the rows that were not moved.
    if (centre > 0) query += static_cast<double>(form.d + 16) * 0x1p-51 * (norms.exact + 2 * centre);
    rest = 2 * norms.rounded + kTiny;
  }
  low_[at] = round_down(term - own);
  error_own_[at] = round_up(own);
  error_query_[at] = round_up(query);
  error_rest_[at] = round_up(rest);
  group_error_query_[group] = std::max(group_error_query_[group], error_query_[at]);
  group_error_rest_[group] = std::max(group_error_rest_[group], error_rest_[at]);
}

PointsView PackedPoints::view() const {
  return {.data = data_.get(),
          .low = low_.data(),
          .error_query = error_query_.data(),
          .error_rest = error_rest_.data(),
          .error_own = error_own_.data(),
          .group_error_query = group_error_query_.data(),
          .group_error_rest = group_error_rest_.data(),
          .group_scale = group_scale_.data(),
          .correction = correction_.data(),
          .base = base_};
}

std::int64_t PackedPoints::bytes() const {
  const std::size_t floats = low_.size() * 4 + group_error_query_.size() * 2 + group_scale_.size() + correction_.size();
  return data_bytes_ + static_cast<std::int64_t>(floats * sizeof(float));
}

PackedQueries::PackedQueries(const Kernel& kernel, const Form& form, const RowsView& queries, std::int64_t begin,
                             std::int64_t end, Errors errors)
    : count(end - begin), tiles(static_cast<int>((count + kernel.layout.query_tile - 1) / kernel.layout.query_tile)) {
  constexpr std::int64_t at_once = 8;  // rows that share one pass over the directions
  const std::int64_t columns = form.columns();
  const auto places = static_cast<std::size_t>(tiles) * static_cast<std::size_t>(kernel.layout.query_tile);
  data = allocate(static_cast<std::int64_t>(places) * packed_depth(kernel, columns) * kernel.layout.run *
                  element_size(kernel.precision));
  norm.assign(places, 0), rest.assign(places, 0), step.assign(places, 0);
  beyond.assign(places, 0), shift.assign(places, 0);
  const PackLoops& loops = pack_loops(kernel.isa);
  const double gamma = accumulation_error(kernel, columns), centre = std::sqrt(form.centre_square);
  // The factor -2 of the products is a power of two: the packed query (or its step) contains it without rounding.
  const double factor = is_elementwise(form.metric) ? 1.0 : -2.0;
  const double limit = kernel.layout.query_limit;
  ScreenRows rows(form, loops, at_once);
  AlignedVector<double> rounded(static_cast<std::size_t>(padded(columns)));
  RowWriter writer(kernel, columns, true);

  for (std::int64_t q = 0; q < count; ++q) {
    const auto at = static_cast<std::size_t>(q);
    const std::int64_t r = q % at_once;
    if (r == 0) rows.read(queries, begin + q, std::min(at_once, count - q));
    const RowTerms& terms = rows.terms(r);
    const double* row = rows.row(r);
    beyond[at] = is_beyond(form, terms);
    if (errors == Errors::measured) shift[at] = query_term(form, terms);
    if (beyond[at]) continue;
    if (kernel.precision == Precision::int8) {
      const double unit = int8_step(loops.span(row, columns), limit);
      step[at] = static_cast<float>(2 * unit);
      loops.round_int8(row, columns, unit, limit, kernel.layout.query_offset, writer.elements(), rounded.data());
    } else {
      loops.round(kernel.precision, row, columns, factor, writer.elements(), rounded.data());
    }
    writer.write(data.get(), q);
    if (errors == Errors::ignored) continue;
    const Norms norms = rows.norms(r, rounded.data());
    if (is_elementwise(form.metric)) {
      norm[at] = round_up((norms.difference + gamma * norms.rounded) * (1 + 0x1p-20) + kTiny);
    } else {
      norm[at] = round_up((norms.exact + centre) * (1 + 0x1p-20) + kTiny);
      rest[at] = round_up((norms.difference + gamma * norms.rounded) * (1 + 0x1p-20) + kTiny);
    }
  }
}

QueriesView PackedQueries::view() const {
  return {.data = data.get(),
          .norm = norm.data(),
          .rest = rest.data(),
          .step = step.data(),
          .tiles = tiles,
          .count = count};
}

}  // namespace tonari
