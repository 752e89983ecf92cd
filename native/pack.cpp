#include "pack.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace tonari {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Far above every score of packed data (magnitudes near 1) and far below overflow: "no bound", without infinities that
// would turn into NaN when multiplied by zero.
constexpr float kHuge = 1e30f;
// Packed values this small are rounded to zero: slow arithmetic on subnormals never happens, and the measured
// difference accounts for it.
constexpr double kFlush = 0x1p-60;
constexpr double kTiny = 0x1p-100;  // absolute floor of every bound
// A row with larger values is beyond the screen: its products could overflow.
constexpr double kUsable = 1e15;

using Bytes = std::unique_ptr<std::byte[], void (*)(std::byte*)>;

Bytes allocate(std::int64_t bytes) {
  constexpr std::size_t alignment = 64;
  const std::size_t rounded = (static_cast<std::size_t>(bytes) + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, rounded);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

// The next float32 at or above `x`; kHuge where there is none worth having (overflow, NaN).
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

float from_bfloat16(std::uint16_t half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16); }

int element_size(Precision precision) {
  return precision == Precision::int8 ? 1 : precision == Precision::bfloat16 ? 2 : 4;
}

// Where element (row, column) lies, in elements: see Layout.
struct Placement {
  std::int64_t rows_per_block, run, depth;
  bool interleaved;  // a query's run is spread over tile rows (the matrix unit's B operand)

  std::int64_t operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t block = row / rows_per_block, r = row % rows_per_block, k = column / run, c = column % run;
    const std::int64_t cell = (block * depth + k) * rows_per_block * run;
    if (!interleaved) return cell + r * run + c;
    const std::int64_t together = run / 16;  // 2 bfloat16 or 4 int8 share a 32-bit lane
    return cell + (c / together) * 16 * together + r * together + c % together;
  }
};

Placement point_placement(const Kernel& kernel, std::int64_t d) {
  const Layout& layout = kernel.layout;
  const int rows = layout.tile_rows != 0 ? layout.tile_rows : layout.point_group;
  return {rows, layout.run, packed_depth(kernel, d), false};
}

Placement query_placement(const Kernel& kernel, std::int64_t d) {
  const Layout& layout = kernel.layout;
  const int rows = layout.tile_rows != 0 ? layout.tile_rows : layout.query_tile;
  return {rows, layout.run, packed_depth(kernel, d), layout.tile_rows != 0};
}

// Whether integers of the form row are themselves the packed bytes, so that nothing is rounded at all.
bool integers_fit(const double* row, std::int64_t d, double low, double high) {
  for (std::int64_t i = 0; i < d; ++i) {
    if (row[i] != std::nearbyint(row[i]) || row[i] < low || row[i] > high) return false;
  }
  return true;
}

double largest(const double* row, std::int64_t d) {
  double most = 0;
  for (std::int64_t i = 0; i < d; ++i) most = std::max(most, std::fabs(row[i]));
  return most;
}

// Value of one int8 step. Any step is correct, since what it loses is measured; this one is the finest that fits.
double int8_step(double most, double limit) {
  return most > kTiny ? static_cast<double>(static_cast<float>(most / limit)) : 1.0;
}

// What the certificate needs to know of one row: its size, its rounded size, and their difference. For products these
// are Euclidean norms; for sums of |differences| they are l1 norms; for the maximum, maxima.
struct Norms {
  double exact = 0, rounded = 0, difference = 0, square = 0;
};

class NormMeter {
 public:
  explicit NormMeter(Metric metric) : metric_(metric) {}
  void add(double exact, double rounded) {
    const double difference = exact - rounded;
    square_ += exact * exact;
    if (metric_ == Metric::l1 || metric_ == Metric::chi2) {
      exact_ += std::fabs(exact), rounded_ += std::fabs(rounded), difference_ += std::fabs(difference);
    } else if (metric_ == Metric::linf) {
      exact_ = std::max(exact_, std::fabs(exact)), rounded_ = std::max(rounded_, std::fabs(rounded));
      difference_ = std::max(difference_, std::fabs(difference));
    } else {
      exact_ += exact * exact, rounded_ += rounded * rounded, difference_ += difference * difference;
    }
  }
  Norms result() const {
    if (is_elementwise(metric_)) return {exact_, rounded_, difference_ + 0x1p-50 * exact_, square_};
    const double norm = std::sqrt(exact_);
    // The form row itself carries a few roundings of float64.
    return {norm, std::sqrt(rounded_), std::sqrt(difference_) + 0x1p-50 * norm, square_};
  }

 private:
  Metric metric_;
  double exact_ = 0, rounded_ = 0, difference_ = 0, square_ = 0;
};

double chi2_factor(Metric metric) { return metric == Metric::chi2 ? 3.0 : 1.0; }  // |d term / d x| <= 3 (docs)

}  // namespace

int packed_depth(const Kernel& kernel, std::int64_t d) {
  return static_cast<int>((d + kernel.layout.run - 1) / kernel.layout.run);
}

PackedPoints::PackedPoints(const Kernel& kernel, const Form& form, const RowsView& points, std::int64_t begin,
                           std::int64_t end)
    : kernel_(&kernel),
      base_(begin),
      count_(end - begin),
      groups_((end - begin + kernel.layout.point_group - 1) / kernel.layout.point_group),
      data_(nullptr, [](std::byte*) {}),
      data_bytes_(groups_ * kernel.layout.point_group * packed_depth(kernel, form.d) * kernel.layout.run *
                  element_size(kernel.precision)) {
  const auto padded = static_cast<std::size_t>(groups_ * kernel.layout.point_group);
  const auto groups = static_cast<std::size_t>(groups_);
  data_ = allocate(data_bytes_);
  low_.assign(padded, kInfinity);
  error_query_.assign(padded, 0), error_rest_.assign(padded, 0), error_own_.assign(padded, 0);
  group_error_query_.assign(groups, 0), group_error_rest_.assign(groups, 0);
  if (kernel.precision == Precision::int8) group_scale_.assign(groups, 0), correction_.assign(padded, 0);
  std::vector<double> scratch(static_cast<std::size_t>(kernel.layout.point_group * form.d));
  for (std::int64_t group = 0; group < groups_; ++group) pack_group(form, points, group, scratch);
}

void PackedPoints::pack_group(const Form& form, const RowsView& points, std::int64_t group,
                              std::vector<double>& scratch) {
  const Kernel& kernel = *kernel_;
  const std::int64_t d = form.d, size = kernel.layout.point_group;
  const std::int64_t first = group * size, last = std::min(first + size, count_);
  const Placement place = point_placement(kernel, d);
  const double gamma = accumulation_error(kernel, d);

  double most = 0;
  bool exact = true;
  for (std::int64_t p = first; p < last; ++p) {
    double* row = scratch.data() + (p - first) * d;
    load_row(points, base_ + p, row);
    to_form(form, row);
    if (kernel.precision == Precision::int8 && largest(row, d) < kUsable) {
      most = std::max(most, largest(row, d));
      exact = exact && integers_fit(row, d, -128, 127);
    }
  }
  const double step = exact ? 1.0 : int8_step(most, 127);
  const auto g = static_cast<std::size_t>(group);

  for (std::int64_t p = first; p < last; ++p) {
    const double* row = scratch.data() + (p - first) * d;
    const auto at = static_cast<std::size_t>(p);
    if (!(largest(row, d) < kUsable)) {  // always a survivor, judged by its exact value alone
      low_[at] = -kHuge;
      error_own_[at] = kHuge;
      continue;
    }
    NormMeter meter(form.metric);
    std::int32_t sum = 0;
    for (std::int64_t c = 0; c < d; ++c) {
      const std::int64_t where = place(p, c);
      double rounded = 0;
      if (kernel.precision == Precision::int8) {
        const double steps = std::clamp(std::nearbyint(row[c] / step), -128.0, 127.0);
        const auto byte = static_cast<std::int8_t>(steps);
        reinterpret_cast<std::int8_t*>(data_.get())[where] = byte;
        sum += byte;
        rounded = byte * step;
      } else if (std::fabs(row[c]) >= kFlush) {
        const float value = static_cast<float>(row[c]);
        if (kernel.precision == Precision::bfloat16) {
          const std::uint16_t half = to_bfloat16(value);
          reinterpret_cast<std::uint16_t*>(data_.get())[where] = half;
          rounded = static_cast<double>(from_bfloat16(half));
        } else {
          reinterpret_cast<float*>(data_.get())[where] = value;
          rounded = static_cast<double>(value);
        }
      }
      meter.add(row[c], rounded);
    }
    const Norms norms = meter.result();
    const double term = point_term(form, row);
    double own = 0, query = 0, rest = 0;
    if (is_elementwise(form.metric)) {
      own = chi2_factor(form.metric) * norms.difference + gamma * norms.rounded + kTiny;
      query = 1;
    } else {
      own = gamma * std::fabs(term) + kTiny;
      query = 2 * norms.difference;
      rest = 2 * norms.rounded + kTiny;
    }
    low_[at] = round_down(term - own);
    error_own_[at] = round_up(own);
    error_query_[at] = round_up(query);
    error_rest_[at] = round_up(rest);
    if (kernel.precision == Precision::int8) correction_[at] = -kernel.layout.query_offset * sum;
    group_error_query_[g] = std::max(group_error_query_[g], error_query_[at]);
    group_error_rest_[g] = std::max(group_error_rest_[g], error_rest_[at]);
  }
  if (kernel.precision == Precision::int8) group_scale_[g] = static_cast<float>(step);
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
                             std::int64_t end)
    : count(end - begin),
      tiles(static_cast<int>((count + kernel.layout.query_tile - 1) / kernel.layout.query_tile)),
      data(nullptr, [](std::byte*) {}) {
  const std::int64_t d = form.d;
  const auto padded = static_cast<std::size_t>(tiles) * static_cast<std::size_t>(kernel.layout.query_tile);
  data = allocate(static_cast<std::int64_t>(padded) * packed_depth(kernel, d) * kernel.layout.run *
                  element_size(kernel.precision));
  norm.assign(padded, 0), rest.assign(padded, 0), step.assign(padded, 0);
  threshold.assign(padded, -kInfinity);
  beyond.assign(padded, 0), shift.assign(padded, 0);
  const Placement place = query_placement(kernel, d);
  const double gamma = accumulation_error(kernel, d);
  // The products' factor -2 is a power of two: it goes into the packed query (or its step) and rounds nothing.
  const double factor = is_elementwise(form.metric) ? 1.0 : -2.0;
  std::vector<double> row(static_cast<std::size_t>(d)), rounded(static_cast<std::size_t>(d));

  for (std::int64_t q = 0; q < count; ++q) {
    const auto at = static_cast<std::size_t>(q);
    load_row(queries, begin + q, row.data());
    to_form(form, row.data());
    const double most = largest(row.data(), d);
    const bool usable = most < kUsable;
    beyond[at] = !usable;
    const double limit = kernel.layout.query_limit;
    const bool exact = kernel.precision == Precision::int8 && integers_fit(row.data(), d, -limit - 1, limit);
    const double unit = exact ? 1.0 : int8_step(usable ? most : 0.0, limit);
    if (kernel.precision == Precision::int8) {
      // Padding columns must hold the offset too, but points are zero there, so that any value will do.
      step[at] = static_cast<float>(2 * unit);
    }
    for (std::int64_t c = 0; c < d; ++c) {
      const auto column = static_cast<std::size_t>(c);
      const std::int64_t where = place(q, c);
      rounded[column] = 0;
      if (kernel.precision == Precision::int8) {
        const double steps = usable ? std::clamp(std::nearbyint(row[column] / unit), -limit - 1, limit) : 0.0;
        const int offset = static_cast<int>(steps) + kernel.layout.query_offset;
        reinterpret_cast<std::uint8_t*>(data.get())[where] = static_cast<std::uint8_t>(offset);
        rounded[column] = steps * unit;
      } else if (usable && std::fabs(row[column]) >= kFlush) {
        const float value = static_cast<float>(row[column]);
        if (kernel.precision == Precision::bfloat16) {
          const std::uint16_t half = to_bfloat16(value);
          rounded[column] = static_cast<double>(from_bfloat16(half));
          reinterpret_cast<std::uint16_t*>(data.get())[where] =
              to_bfloat16(static_cast<float>(factor * rounded[column]));
        } else {
          rounded[column] = static_cast<double>(value);
          reinterpret_cast<float*>(data.get())[where] = static_cast<float>(factor * rounded[column]);
        }
      }
    }
    NormMeter meter(form.metric);
    for (std::size_t c = 0; c < row.size(); ++c) meter.add(row[c], rounded[c]);
    const Norms norms = meter.result();
    shift[at] = query_term(form, row.data(), norms.square);
    if (!usable) continue;  // its threshold stays below every score: nothing passes the screen
    threshold[at] = kInfinity;
    if (is_elementwise(form.metric)) {
      norm[at] = round_up(chi2_factor(form.metric) * norms.difference + gamma * norms.rounded + kTiny);
    } else {
      norm[at] = round_up(norms.exact * (1 + 0x1p-20) + kTiny);
      rest[at] = round_up((norms.difference + gamma * norms.rounded) * (1 + 0x1p-20) + kTiny);
    }
  }
}

QueriesView PackedQueries::view() const {
  return {.data = data.get(),
          .norm = norm.data(),
          .rest = rest.data(),
          .step = step.data(),
          .threshold = threshold.data(),
          .tiles = tiles};
}

}  // namespace tonari
