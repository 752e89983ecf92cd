#include "exact/pack.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/row_values.hpp"

namespace tonari {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Packed values this small are rounded to zero, which avoids slow arithmetic on subnormals; the measured difference
// accounts for it.
constexpr double kFlush = 0x1p-60;
constexpr double kTiny = 0x1p-100;  // absolute floor of every bound
// A row of larger norm is beyond the screen. Scores of all other rows are below 3e24, far less than kHuge.
constexpr double kUsableSquare = 1e24;

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

std::uint16_t to_bfloat16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

int element_size(Precision precision) {
  return precision == Precision::int8 ? 1 : precision == Precision::bfloat16 ? 2 : 4;
}

}  // namespace

// Writes the elements of one row into packed memory (see Layout). Padding beyond d stays zero.
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
        elements_(static_cast<std::size_t>(run_bytes_ * depth_)) {}

  std::byte* elements() { return elements_.data(); }

  void write(std::byte* packed, std::int64_t row) const {
    const std::int64_t block = row / rows_, r = row % rows_;
    for (std::int64_t k = 0; k < depth_; ++k) {
      std::byte* cell = packed + (block * depth_ + k) * rows_ * run_bytes_;
      const std::byte* run = elements_.data() + k * run_bytes_;
      if (run_bytes_ == 4) {
        std::memcpy(cell + r * 4, run, 4);
      } else if (!interleaved_) {
        std::memcpy(cell + r * run_bytes_, run, static_cast<std::size_t>(run_bytes_));
      } else {  // the matrix unit's second operand: each 32-bit piece of a query has a tile row of its own
        for (std::int64_t j = 0; j < run_bytes_ / 4; ++j) std::memcpy(cell + (j * rows_ + r) * 4, run + j * 4, 4);
      }
    }
  }

 private:
  std::int64_t size_, run_bytes_, depth_, rows_;
  bool interleaved_;
  std::vector<std::byte> elements_;
};

namespace {

// Rounds to the nearest integer, ties to even, without a library call; exact below 2^51.
double nearest(double x) {
  constexpr double magic = 0x1.8p52;
  return (x + magic) - magic;
}

// Rounds a form row to the kernel's precision: the elements to multiply, and their values (`factor` is a power of two
// that only the elements are multiplied by).
void round_row(const Kernel& kernel, const double* row, std::int64_t d, double factor, std::byte* elements,
               double* rounded) {
  for (std::int64_t c = 0; c < d; ++c) {
    const float value = std::fabs(row[c]) >= kFlush ? static_cast<float>(row[c]) : 0.0f;
    if (kernel.precision == Precision::bfloat16) {
      const std::uint16_t half = to_bfloat16(value);
      const std::uint16_t scaled = to_bfloat16(static_cast<float>(factor) * bfloat16_to_float(half));
      rounded[c] = static_cast<double>(bfloat16_to_float(half));
      std::memcpy(elements + c * 2, &scaled, 2);
    } else {
      const float scaled = static_cast<float>(factor) * value;
      rounded[c] = static_cast<double>(value);
      std::memcpy(elements + c * 4, &scaled, 4);
    }
  }
}

// The same in steps of `step`, between -limit - 1 and limit; `offset` is added to each element. Returns the sum of the
// elements.
std::int32_t round_row_int8(const double* row, std::int64_t d, double step, double limit, int offset,
                            std::byte* elements, double* rounded) {
  const double inverse = 1.0 / step;
  std::int32_t sum = 0;
  for (std::int64_t c = 0; c < d; ++c) {
    const double steps = std::min(std::max(nearest(row[c] * inverse), -limit - 1), limit);
    const int value = static_cast<int>(steps);
    elements[c] = static_cast<std::byte>(value + offset);
    rounded[c] = steps * step;
    sum += value;
  }
  return sum;
}

// Whether the form row consists of integers that are the packed bytes themselves, so that nothing is rounded.
bool integers_fit(const double* row, std::int64_t d, double least, double most) {
  for (std::int64_t i = 0; i < d; ++i) {
    if (row[i] != nearest(row[i]) || row[i] < least || row[i] > most) return false;
  }
  return true;
}

double largest(const double* row, std::int64_t d) {
  double most = 0;
  for (std::int64_t i = 0; i < d; ++i) most = std::max(most, std::fabs(row[i]));
  return most;
}

// The value of one int8 step. Any step is correct, since its error is measured; this one is the finest that fits.
double int8_step(double most, double limit) {
  return most > kTiny ? static_cast<double>(static_cast<float>(most / limit)) : 1.0;
}

// One step for a group of points: exact for small integers, else the finest that fits its largest value.
double group_step(const double* rows, std::int64_t count, std::int64_t d) {
  double most = 0;
  bool exact = true;
  for (std::int64_t p = 0; p < count; ++p) {
    if (is_beyond(rows + p * d, d)) continue;
    most = std::max(most, largest(rows + p * d, d));
    exact = exact && integers_fit(rows + p * d, d, -128, 127);
  }
  return exact ? 1.0 : int8_step(most, 127);
}

// What the certificate needs to know about a row: the size of the row, of the rounded row, and of their difference. For
// products these are Euclidean norms; for an elementwise metric, sums or maxima of what its struct computes for each
// element.
struct Norms {
  double exact = 0, rounded = 0, difference = 0, square = 0;
};

struct SquaredNorms {
  static constexpr bool maximum = false;
  static double size(double x) { return x * x; }
  static double difference(double x, double y) { return (x - y) * (x - y); }
};

// BY: SquaredNorms, or the struct of an elementwise metric.
template <class BY>
Norms measured_by(const double* exact, const double* rounded, std::int64_t d) {
  constexpr int lanes = 8;  // independent sums, so that additions overlap
  const auto join = [](double a, double b) { return BY::maximum ? std::max(a, b) : a + b; };
  double size[lanes] = {}, rounded_size[lanes] = {}, difference[lanes] = {};
  for (std::int64_t first = 0; first < d; first += lanes) {
    const int count = static_cast<int>(std::min<std::int64_t>(lanes, d - first));
    for (int j = 0; j < count; ++j) {
      const double x = exact[first + j], y = rounded[first + j];
      size[j] = join(size[j], BY::size(x)), rounded_size[j] = join(rounded_size[j], BY::size(y));
      difference[j] = join(difference[j], BY::difference(x, y));
    }
  }
  Norms norms;
  for (int j = 0; j < lanes; ++j) {
    norms.exact = join(norms.exact, size[j]), norms.rounded = join(norms.rounded, rounded_size[j]);
    norms.difference = join(norms.difference, difference[j]);
  }
  return norms;
}

Norms measure(Metric metric, const double* exact, const double* rounded, std::int64_t d) {
  constexpr double few = 0x1p-50;  // the form row itself has a few float64 roundings
  if (is_elementwise(metric)) {
    return with_term(metric, [&](auto term) {
      Norms norms = measured_by<decltype(term)>(exact, rounded, d);
      norms.difference = decltype(term)::stretch * (norms.difference + few * norms.exact);
      return norms;
    });
  }
  Norms norms = measured_by<SquaredNorms>(exact, rounded, d);
  norms.square = norms.exact;
  norms.exact = std::sqrt(norms.exact), norms.rounded = std::sqrt(norms.rounded);
  norms.difference = std::sqrt(norms.difference) + few * norms.exact;
  return norms;
}

// |scale * centre|: how far the inner product's rows were moved; 0 for all other forms.
double centre_norm(const Form& form) {
  if (!is_product(form.metric)) return 0;
  double square = 0;
  for (double c : form.centre) square += c * c * form.scale * form.scale;
  return std::sqrt(square);
}

}  // namespace

bool is_beyond(const double* row, std::int64_t d) {
  constexpr std::int64_t longest = std::int64_t{1} << 22;  // beyond, a float32 sum of d terms has no useful bound
  if (d > longest) return true;
  double square = 0;
  for (std::int64_t i = 0; i < d; ++i) square += row[i] * row[i];
  return !(square < kUsableSquare);  // true for NaN, too
}

int packed_depth(const Kernel& kernel, std::int64_t d) {
  return static_cast<int>((d + kernel.layout.run - 1) / kernel.layout.run);
}

PackedPoints::PackedPoints(const Kernel& kernel, const Form& form, const RowsView& points, std::int64_t begin,
                           std::int64_t end, Errors errors)
    : kernel_(&kernel),
      base_(begin),
      count_(end - begin),
      groups_((end - begin + kernel.layout.point_group - 1) / kernel.layout.point_group),
      data_bytes_(groups_ * kernel.layout.point_group * packed_depth(kernel, form.d) * kernel.layout.run *
                  element_size(kernel.precision)) {
  // One register more than the groups need, since a group's errors are read a register at a time.
  const auto padded = static_cast<std::size_t>(groups_ * kernel.layout.point_group + 16);
  const auto groups = static_cast<std::size_t>(groups_);
  data_ = allocate(data_bytes_);
  low_.assign(padded, kInfinity);
  error_query_.assign(padded, 0), error_rest_.assign(padded, 0), error_own_.assign(padded, 0);
  group_error_query_.assign(groups, 0), group_error_rest_.assign(groups, 0);
  if (kernel.precision == Precision::int8) group_scale_.assign(groups, 0), correction_.assign(padded, 0);
  std::vector<double> rows(static_cast<std::size_t>(kernel.layout.point_group * form.d));
  std::vector<double> rounded(static_cast<std::size_t>(form.d));
  RowWriter writer(kernel, form.d, false);
  const double gamma = accumulation_error(kernel, form.d);
  for (std::int64_t group = 0; group < groups_; ++group) {
    const std::int64_t first = group * kernel.layout.point_group;
    const std::int64_t last = std::min(first + kernel.layout.point_group, count_);
    double step = 1.0;
    for (std::int64_t p = first; p < last; ++p) {
      double* row = rows.data() + (p - first) * form.d;
      load_row(points, base_ + p, row);
      to_form(form, row);
    }
    if (kernel.precision == Precision::int8) {
      step = group_step(rows.data(), last - first, form.d);
      group_scale_[static_cast<std::size_t>(group)] = static_cast<float>(step);
    }
    for (std::int64_t p = first; p < last; ++p) {
      const double* row = rows.data() + (p - first) * form.d;
      if (is_beyond(row, form.d)) {  // always survives, so that only its exact value judges it
        low_[static_cast<std::size_t>(p)] = -kHuge;
        error_own_[static_cast<std::size_t>(p)] = kHuge;
        continue;
      }
      pack_row(form, row, p, step, rounded.data(), writer);
      if (errors == Errors::measured) {
        measure_row(form, row, p, gamma, rounded.data());
      } else {
        low_[static_cast<std::size_t>(p)] = static_cast<float>(point_term(form, row));
      }
    }
  }
}

void PackedPoints::pack_row(const Form& form, const double* row, std::int64_t point, double step, double* rounded,
                            RowWriter& writer) {
  if (kernel_->precision == Precision::int8) {
    const std::int32_t sum = round_row_int8(row, form.d, step, 127, 0, writer.elements(), rounded);
    correction_[static_cast<std::size_t>(point)] = -kernel_->layout.query_offset * sum;
  } else {
    round_row(*kernel_, row, form.d, 1.0, writer.elements(), rounded);
  }
  writer.write(data_.get(), point);
}

void PackedPoints::measure_row(const Form& form, const double* row, std::int64_t point, double gamma,
                               const double* rounded) {
  const auto at = static_cast<std::size_t>(point), group = at / static_cast<std::size_t>(kernel_->layout.point_group);
  const Norms norms = measure(form.metric, row, rounded, form.d);
  const double term = is_euclidean(form.metric) ? norms.square : point_term(form, row);
  double own = 0, query = 0, rest = 0;
  if (is_elementwise(form.metric)) {
    own = (norms.difference + gamma * norms.rounded) * (1 + gamma + 0x1p-20) + kTiny;
    query = 1;
  } else {
    own = gamma * std::fabs(term) + kTiny;
    query = 2 * norms.difference;
    const double centre = centre_norm(form);  // exact values are rounded relative to the rows that were not moved
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
  const std::int64_t d = form.d;
  const auto padded = static_cast<std::size_t>(tiles) * static_cast<std::size_t>(kernel.layout.query_tile);
  data = allocate(static_cast<std::int64_t>(padded) * packed_depth(kernel, d) * kernel.layout.run *
                  element_size(kernel.precision));
  norm.assign(padded, 0), rest.assign(padded, 0), step.assign(padded, 0);
  beyond.assign(padded, 0), shift.assign(padded, 0);
  const double gamma = accumulation_error(kernel, d);
  // The factor -2 of the products is a power of two: the packed query (or its step) contains it without rounding.
  const double factor = is_elementwise(form.metric) ? 1.0 : -2.0;
  const double limit = kernel.layout.query_limit;
  std::vector<double> row(static_cast<std::size_t>(d)), rounded(static_cast<std::size_t>(d));
  RowWriter writer(kernel, d, true);

  for (std::int64_t q = 0; q < count; ++q) {
    const auto at = static_cast<std::size_t>(q);
    load_row(queries, begin + q, row.data());
    to_form(form, row.data());
    beyond[at] = is_beyond(row.data(), d);
    const bool usable = !beyond[at];
    if (usable && kernel.precision == Precision::int8) {
      const double unit =
          integers_fit(row.data(), d, -limit - 1, limit) ? 1.0 : int8_step(largest(row.data(), d), limit);
      step[at] = static_cast<float>(2 * unit);
      round_row_int8(row.data(), d, unit, limit, kernel.layout.query_offset, writer.elements(), rounded.data());
    } else if (usable) {
      round_row(kernel, row.data(), d, factor, writer.elements(), rounded.data());
    }
    if (usable) writer.write(data.get(), q);
    if (errors == Errors::ignored) continue;
    const Norms norms = measure(form.metric, row.data(), rounded.data(), d);
    shift[at] = query_term(form, row.data(), norms.square);
    if (!usable) continue;
    if (is_elementwise(form.metric)) {
      norm[at] = round_up((norms.difference + gamma * norms.rounded) * (1 + 0x1p-20) + kTiny);
    } else {
      norm[at] = round_up((norms.exact + centre_norm(form)) * (1 + 0x1p-20) + kTiny);
      rest[at] = round_up((norms.difference + gamma * norms.rounded) * (1 + 0x1p-20) + kTiny);
    }
  }
}

QueriesView PackedQueries::view() const {
  return {.data = data.get(), .norm = norm.data(), .rest = rest.data(), .step = step.data(), .tiles = tiles};
}

}  // namespace tonari
