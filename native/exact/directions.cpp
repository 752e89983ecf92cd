#include "exact/directions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "exact/pack_loops.hpp"

namespace tonari {
namespace {

constexpr int kRounds = 3;
constexpr std::int64_t kBatch = 64;       // rows in a batch, which stay in the L2 cache with their products
constexpr double kShorter = 1 - 0x1p-20;  // far more than the amount by which rounding can raise V^T V above I
constexpr double kDependent = 0x1p-30;  // relative to a column's length: a remainder that is shorter is rounding error

double dot(const double* a, const double* b, std::int64_t d) {
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (int j = 0; i + j < d; ++j) sums[j] += a[i + j] * b[i + j];
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// Makes the columns orthonormal by the method of Gram and Schmidt; columns that depend on others become zeros. After
// two passes, only rounding errors remain.
void make_orthonormal(double* basis, std::int64_t d, std::int64_t count, int passes) {
  std::vector<double> columns(static_cast<std::size_t>(count * d));
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t a = 0; a < count; ++a) {
      columns[static_cast<std::size_t>(a * d + i)] = basis[panel_place(d, i, a)];
    }
  }
  for (std::int64_t a = 0; a < count; ++a) {
    double* column = columns.data() + a * d;
    double length = std::sqrt(dot(column, column, d));
    for (int pass = 0; pass < passes && length > 0; ++pass) {
      for (std::int64_t i = 0; i < d; ++i) column[i] /= length;
      for (std::int64_t b = 0; b < a; ++b) {
        const double* other = columns.data() + b * d;
        const double along = dot(column, other, d);
        for (std::int64_t i = 0; i < d; ++i) column[i] -= along * other[i];
      }
      length = std::sqrt(dot(column, column, d));
      if (!(length > kDependent)) length = 0;
    }
    for (std::int64_t i = 0; i < d; ++i) column[i] = length > 0 ? column[i] / length : 0;
  }
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t a = 0; a < count; ++a) {
      basis[panel_place(d, i, a)] = columns[static_cast<std::size_t>(a * d + i)];
    }
  }
}

// The form rows of the sample, in batches.
class Sample {
 public:
  Sample(const Form& form, const RowsView& rows, std::int64_t step, const PackLoops& loops)
      : form_(form),
        rows_(rows),
        step_(step),
        loops_(loops),
        batch_(static_cast<std::size_t>(kBatch * padded(form.d))) {}

  // Calls work(rows, count) for batch after batch; rows that the form cannot represent are skipped.
  template <class Work>
  void each(const Work& work) {
    std::int64_t held = 0;
    for (std::int64_t i = 0; i < rows_.n; i += step_) {
      const RowTerms terms = loops_.read(form_, rows_, i, batch_.data() + held * padded(form_.d));
      held += !is_beyond(form_, terms);
      if (held == kBatch) work(batch_.data(), held), held = 0;
    }
    if (held > 0) work(batch_.data(), held);
  }

 private:
  const Form& form_;
  const RowsView& rows_;
  std::int64_t step_;
  const PackLoops& loops_;
  AlignedVector<double> batch_;
};

}  // namespace

Directions principal_directions(const Form& form, const RowsView& rows, std::int64_t step, std::int64_t count,
                                Isa isa) {
  const PackLoops& loops = pack_loops(isa);
  Sample sample(form, rows, step, loops);
  const std::int64_t d = form.d, apart = padded(count);
  // In panels, as the loops read them.
  AlignedVector<double> basis(static_cast<std::size_t>(padded(d) * apart), 0.0), moments(basis.size());
  AlignedVector<double> products(static_cast<std::size_t>(kBatch * apart));
  std::int64_t seen = 0;
  sample.each([&](const double* batch, std::int64_t held) {
    for (std::int64_t r = 0; r < held; ++r, ++seen) {
      double* column = basis.data() + panel_place(d, 0, seen % count);  // sums of several rows, with signs
      for (std::int64_t i = 0; i < d; ++i) column[i * kLanes] += (seen / count % 2 ? -1 : 1) * batch[r * padded(d) + i];
    }
  });
  make_orthonormal(basis.data(), d, count, 1);
  for (int round = 0; round < kRounds; ++round) {
    std::fill(moments.begin(), moments.end(), 0.0);
    sample.each([&](const double* batch, std::int64_t held) {
      loops.multiply(batch, held, d, basis.data(), apart, products.data());
      loops.add_moments(batch, held, d, products.data(), apart, moments.data());
    });
    basis.swap(moments);
    make_orthonormal(basis.data(), d, count, round + 1 < kRounds ? 1 : 2);
  }
  std::vector<double> found(static_cast<std::size_t>(d * count));
  for (std::int64_t i = 0; i < d; ++i) {
    for (std::int64_t a = 0; a < count; ++a) {
      found[static_cast<std::size_t>(i * count + a)] = basis[static_cast<std::size_t>(panel_place(d, i, a))] * kShorter;
    }
  }
  return Directions(found.data(), d, count);
}

void screened_rows(const Form& form, const RowsView& rows, std::int64_t step, double* out, Isa isa) {
  const PackLoops& loops = pack_loops(isa);
  const std::int64_t columns = form.columns(), apart = padded(columns);
  AlignedVector<double> read(static_cast<std::size_t>(kBatch * padded(form.d)));
  AlignedVector<double> contracted(form.contracts() ? static_cast<std::size_t>(kBatch * apart) : 0);
  std::vector<RowTerms> terms(static_cast<std::size_t>(kBatch));
  const double* seen = form.contracts() ? contracted.data() : read.data();
  for (std::int64_t i = 0; i < rows.n;) {
    std::int64_t held = 0;
    for (; held < kBatch && i < rows.n; ++held, i += step) {
      terms[static_cast<std::size_t>(held)] = loops.read(form, rows, i, read.data() + held * padded(form.d));
    }
    if (form.contracts()) loops.contract(form, read.data(), held, terms.data(), contracted.data());
    for (std::int64_t r = 0; r < held; ++r, out += columns) {
      const bool beyond = is_beyond(form, terms[static_cast<std::size_t>(r)]);
      if (beyond) std::fill_n(out, columns, std::numeric_limits<double>::quiet_NaN());
      else std::copy_n(seen + r * apart, columns, out);
    }
  }
}

void products(const double* rows, std::int64_t count, const double* others, std::int64_t of, std::int64_t d,
              double* found, Isa isa) {
  const PackLoops& loops = pack_loops(isa);
  const std::int64_t width = padded(of);
  AlignedVector<double> panels(static_cast<std::size_t>(padded(d) * width), 0.0);
  for (std::int64_t j = 0; j < of; ++j) {
    for (std::int64_t i = 0; i < d; ++i) panels[static_cast<std::size_t>(panel_place(d, i, j))] = others[j * d + i];
  }
  AlignedVector<double> batch(static_cast<std::size_t>(kBatch * padded(d)), 0.0);
  AlignedVector<double> of_batch(static_cast<std::size_t>(kBatch * width));
  for (std::int64_t first = 0; first < count; first += kBatch) {
    const std::int64_t held = std::min(kBatch, count - first);
    for (std::int64_t r = 0; r < held; ++r) std::copy_n(rows + (first + r) * d, d, batch.data() + r * padded(d));
    loops.multiply(batch.data(), held, d, panels.data(), width, of_batch.data());
    for (std::int64_t r = 0; r < held; ++r) std::copy_n(of_batch.data() + r * width, of, found + (first + r) * of);
  }
}

}  // namespace tonari
