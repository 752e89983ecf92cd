// The steps by which rows are packed: read, contract, round, and write in a kernel's layout (exact/kernels.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "exact/pack.hpp"
#include "exact/pack_loops.hpp"

namespace tonari {

constexpr double kTiny = 0x1p-100;  // the smallest value of every bound

// The smallest float32 that is at least `x`; kHuge after overflow or NaN.
inline float round_up(double x) {
  if (!(x < static_cast<double>(kHuge))) return kHuge;
  float rounded = static_cast<float>(x);
  if (static_cast<double>(rounded) < x) rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
  return rounded;
}

inline float round_down(double x) {
  float rounded = static_cast<float>(x);
  if (static_cast<double>(rounded) > x) rounded = std::nextafter(rounded, -std::numeric_limits<float>::infinity());
  return rounded;
}

inline int element_size(Precision precision) {
  return precision == Precision::int8 ? 1 : precision == Precision::bfloat16 ? 2 : 4;
}

// The value of one int8 step for some rows. Any step is correct, since its error is measured. This step is exact if the
// rows are bytes; otherwise it is the smallest one that fits.
inline double int8_step(const Span& span, double limit) {
  if (span.whole && span.lowest >= -limit - 1 && span.highest <= limit) return 1.0;
  return span.largest > kTiny ? static_cast<double>(static_cast<float>(span.largest / limit)) : 1.0;
}

inline Span joined(const Span& a, const Span& b) {
  return {.largest = std::max(a.largest, b.largest),
          .whole = a.whole && b.whole,
          .lowest = std::min(a.lowest, b.lowest),
          .highest = std::max(a.highest, b.highest)};
}

// Writes the elements of one row into packed memory (see Layout); elements after the first d are zeros.
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
      const std::byte* element = elements_.data();  // local, since a write might change the member
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

// Reads rows and keeps their form rows.
class FormRows {
 public:
  FormRows(const Form& form, const PackLoops& loops, std::int64_t most)
      : form_(form),
        loops_(loops),
        rows_(static_cast<std::size_t>(most * padded(form.d))),
        terms_(static_cast<std::size_t>(most)) {}

  void read(const RowsView& rows, std::int64_t first, std::int64_t count) {
    for (std::int64_t r = 0; r < count; ++r) {
      terms_[static_cast<std::size_t>(r)] = loops_.read(form_, rows, first + r, rows_.data() + r * padded(form_.d));
    }
  }
  // Prefetches the rows that are read next, in the order of the points, while others are packed.
  static void expect(const RowsView& rows, std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    const auto length = rows.d * static_cast<std::int64_t>(dtype_size(rows.dtype));
    const std::int64_t bytes = std::min(length, kExpected / count);
    for (std::int64_t r = 0; r < count; ++r) {
      const char* row = static_cast<const char*>(row_pointer(rows, first + r));
      for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
    }
  }
  const double* rows() const { return rows_.data(); }
  const std::vector<RowTerms>& terms() const { return terms_; }

 private:
  static constexpr std::int64_t kExpected = 1 << 18;  // bytes that are prefetched: a part of the second-level cache

  const Form& form_;
  const PackLoops& loops_;
  AlignedVector<double> rows_;
  std::vector<RowTerms> terms_;
};

// The rows that the screen compares: form rows, contracted if the form is. A look's form differs only in its
// contraction, so the same form rows serve it too.
class ScreenRows {
 public:
  ScreenRows(const Form& form, const PackLoops& loops, std::int64_t most)
      : form_(form),
        loops_(loops),
        width_(padded(form.columns())),
        contracted_(form.contracts() ? static_cast<std::size_t>(most * width_) : 0) {}

  void take(const FormRows& from, std::int64_t count) {
    terms_ = from.terms();
    rows_ = from.rows();
    if (!form_.contracts()) return;
    loops_.contract(form_, from.rows(), count, terms_.data(), contracted_.data());
    rows_ = contracted_.data();
  }
  const RowTerms& terms(std::int64_t r) const { return terms_[static_cast<std::size_t>(r)]; }
  const double* row(std::int64_t r) const { return rows_ + r * width_; }
  // The norms of row r and of its rounded form.
  Norms norms(std::int64_t r, const double* rounded) const {
    Norms found = loops_.measure(form_.metric, row(r), rounded, form_.columns());
    found.exact += terms(r).error, found.difference += terms(r).error;
    return found;
  }

 private:
  const Form& form_;
  const PackLoops& loops_;
  std::int64_t width_;
  AlignedVector<double> contracted_;
  const double* rows_ = nullptr;
  std::vector<RowTerms> terms_;
};

// Rounds points and writes them. In int8, the rows of a group share a step, which depends on all of them.
class PointWriter {
 public:
  PointWriter(const Kernel& kernel, std::int64_t columns, const PackLoops& loops)
      : kernel_(kernel),
        columns_(columns),
        loops_(loops),
        writer_(kernel, columns, false),
        rounded_(static_cast<std::size_t>(padded(columns))) {}

  // Registers a row of the next group; called for each of its rows before the first one is written.
  void expect(const double* row) {
    if (kernel_.precision == Precision::int8) span_ = joined(span_, loops_.span(row, columns_));
  }
  void begin(PackedGroups& to, std::int64_t group) {
    if (kernel_.precision != Precision::int8) return;
    step_ = int8_step(span_, 127);
    span_ = {};
    to.group_scale[static_cast<std::size_t>(group)] = static_cast<float>(step_);
  }
  // Returns the rounded row, until the next is written.
  const double* write(PackedGroups& to, std::int64_t place, const double* row) {
    if (kernel_.precision == Precision::int8) {
      const std::int32_t sum = loops_.round_int8(row, columns_, step_, 127, 0, writer_.elements(), rounded_.data());
      to.correction[static_cast<std::size_t>(place)] = -kernel_.layout.query_offset * sum;
    } else {
      loops_.round(kernel_.precision, row, columns_, 1.0, writer_.elements(), rounded_.data());
    }
    writer_.write(to.data.get(), place);
    return rounded_.data();
  }

 private:
  const Kernel& kernel_;
  std::int64_t columns_;
  const PackLoops& loops_;
  RowWriter writer_;
  AlignedVector<double> rounded_;
  Span span_;
  double step_ = 1.0;
};

}  // namespace tonari
