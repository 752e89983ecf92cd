#include "exact/pack.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "exact/balls.hpp"
#include "exact/row_writer.hpp"

namespace tonari {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kOneRegister = 64;  // bytes that the screen may read after the last group

// Stores the bounds of a packed row; accumulation_error explains `gamma`.
void keep_errors(PackedGroups& to, const Form& form, std::int64_t place, double gamma, double term,
                 const Norms& norms) {
  if (is_elementwise(form.metric)) {
    const double own = (norms.difference + gamma * norms.rounded) * (1 + gamma + 0x1p-20) + kTiny;
    to.bound(place, term, own, 1, 0);
    return;
  }
  double query = 2 * norms.difference;
  const double centre = std::sqrt(form.centre_square);
  // The rounding of exact values is relative to the rows before the centre was subtracted.
  if (centre > 0) query += static_cast<double>(form.d + 16) * 0x1p-51 * (norms.exact + 2 * centre);
  to.bound(place, term, gamma * std::fabs(term) + kTiny, query, 2 * norms.rounded + kTiny);
}

// Packs the groups of a run, one after the other.
class Packer {
 public:
  Packer(const Kernel& kernel, const Form& form, PackedGroups& to, Errors errors)
      : form_(form),
        to_(to),
        errors_(errors),
        gamma_(accumulation_error(kernel, form.columns())),
        rows_(form, pack_loops(kernel.isa), to.group),
        writer_(kernel, form.columns(), pack_loops(kernel.isa)) {}

  void pack(std::int64_t group, const FormRows& read, std::int64_t count) {
    rows_.take(read, count);
    for (std::int64_t r = 0; r < count; ++r) {
      if (!is_beyond(form_, rows_.terms(r))) writer_.expect(rows_.row(r));
    }
    writer_.begin(to_, group);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t place = group * to_.group + r;
      const RowTerms& terms = rows_.terms(r);
      if (is_beyond(form_, terms)) {
        to_.let_pass(place);
        continue;
      }
      const double* rounded = writer_.write(to_, place, rows_.row(r));
      if (errors_ == Errors::measured) {
        keep_errors(to_, form_, place, gamma_, point_term(form_, terms), rows_.norms(r, rounded));
      } else {
        to_.low[static_cast<std::size_t>(place)] = static_cast<float>(point_term(form_, terms));
      }
    }
  }
  const ScreenRows& rows() const { return rows_; }

 private:
  const Form& form_;
  PackedGroups& to_;
  Errors errors_;
  double gamma_;
  ScreenRows rows_;
  PointWriter writer_;
};

constexpr std::int64_t kQueriesAtOnce = 8;  // rows that share one pass over the directions

// Packs queries, several at a time.
class QueryPacker {
 public:
  QueryPacker(const Kernel& kernel, const Form& form, PackedQueries& to, Errors errors)
      : kernel_(kernel),
        form_(form),
        to_(to),
        errors_(errors),
        gamma_(accumulation_error(kernel, form.columns())),
        loops_(pack_loops(kernel.isa)),
        rows_(form, loops_, kQueriesAtOnce),
        writer_(kernel, form.columns(), true),
        rounded_(static_cast<std::size_t>(padded(form.columns()))) {}

  // Packs queries [first, first + count), whose form rows were read.
  void pack(std::int64_t first, const FormRows& read, std::int64_t count) {
    rows_.take(read, count);
    for (std::int64_t r = 0; r < count; ++r) pack_row(first + r, r);
  }

 private:
  void pack_row(std::int64_t q, std::int64_t r) {
    const auto at = static_cast<std::size_t>(q);
    const std::int64_t columns = form_.columns();
    const RowTerms& terms = rows_.terms(r);
    const double* row = rows_.row(r);
    to_.beyond[at] = is_beyond(form_, terms);
    if (errors_ == Errors::measured) to_.shift[at] = query_term(form_, terms);
    if (to_.beyond[at]) return;
    if (kernel_.precision == Precision::int8) {
      const double limit = kernel_.layout.query_limit, unit = int8_step(loops_.span(row, columns), limit);
      to_.step[at] = static_cast<float>(2 * unit);
      const int offset = kernel_.layout.query_offset;
      loops_.round_int8(row, columns, unit, limit, offset, writer_.elements(), rounded_.data());
    } else {
      // The factor -2 of the products is a power of two: the packed query (or its step) contains it without rounding.
      const double factor = is_elementwise(form_.metric) ? 1.0 : -2.0;
      loops_.round(kernel_.precision, row, columns, factor, writer_.elements(), rounded_.data());
    }
    writer_.write(to_.data.get(), q);
    if (errors_ == Errors::ignored) return;
    const Norms norms = rows_.norms(r, rounded_.data());
    if (is_elementwise(form_.metric)) {
      to_.norm[at] = round_up((norms.difference + gamma_ * norms.rounded) * (1 + 0x1p-20) + kTiny);
    } else {
      to_.norm[at] = round_up((norms.exact + std::sqrt(form_.centre_square)) * (1 + 0x1p-20) + kTiny);
      to_.rest[at] = round_up((norms.difference + gamma_ * norms.rounded) * (1 + 0x1p-20) + kTiny);
    }
  }

  const Kernel& kernel_;
  const Form& form_;
  PackedQueries& to_;
  Errors errors_;
  double gamma_;
  const PackLoops& loops_;
  ScreenRows rows_;
  RowWriter writer_;
  AlignedVector<double> rounded_;
};

}  // namespace

int packed_depth(const Kernel& kernel, std::int64_t d) {
  return static_cast<int>((d + kernel.layout.run - 1) / kernel.layout.run);
}

PackedGroups::PackedGroups(const Kernel& kernel, std::int64_t columns, std::int64_t of)
    : group(kernel.layout.point_group),
      count(of),
      groups((of + group - 1) / group),
      data_bytes(groups * group * packed_depth(kernel, columns) * kernel.layout.run * element_size(kernel.precision)),
      data(allocate_whole(data_bytes + kOneRegister)) {
  // One register more than the groups need, since a group's errors are read in whole registers.
  const auto places = static_cast<std::size_t>(groups * group + 16), all = static_cast<std::size_t>(groups);
  low.assign(places, kInfinity);
  error_query.assign(places, 0), error_rest.assign(places, 0), error_own.assign(places, 0);
  group_error_query.assign(all, 0), group_error_rest.assign(all, 0);
  if (kernel.precision == Precision::int8) group_scale.assign(all, 0), correction.assign(places, 0);
}

void PackedGroups::bound(std::int64_t place, double term, double own, double query, double rest) {
  const auto at = static_cast<std::size_t>(place), of = static_cast<std::size_t>(place / group);
  low[at] = round_down(term - own);
  error_own[at] = round_up(own);
  error_query[at] = round_up(query);
  error_rest[at] = round_up(rest);
  group_error_query[of] = std::max(group_error_query[of], error_query[at]);
  group_error_rest[of] = std::max(group_error_rest[of], error_rest[at]);
}

void PackedGroups::let_pass(std::int64_t place) {
  low[static_cast<std::size_t>(place)] = -kHuge;
  error_own[static_cast<std::size_t>(place)] = kHuge;
}

PointsView PackedGroups::view(std::int64_t base) const {
  return {.data = data.get(),
          .low = low.data(),
          .error_query = error_query.data(),
          .error_rest = error_rest.data(),
          .error_own = error_own.data(),
          .group_error_query = group_error_query.data(),
          .group_error_rest = group_error_rest.data(),
          .group_scale = group_scale.data(),
          .correction = correction.data(),
          .base = base};
}

std::int64_t PackedGroups::bytes() const {
  const std::size_t floats = low.size() * 4 + group_error_query.size() * 2 + group_scale.size() + correction.size();
  return data_bytes + static_cast<std::int64_t>(floats * sizeof(float));
}

namespace {

// Calls visit(memory, bytes) for every array of packed groups, which may be const.
template <class Groups, class Visit>
void visit_arrays(Groups& groups, Visit&& visit) {
  visit(groups.data.get(), static_cast<std::size_t>(groups.data_bytes));
  for (auto* array : {&groups.low, &groups.error_query, &groups.error_rest, &groups.error_own,
                      &groups.group_error_query, &groups.group_error_rest, &groups.group_scale}) {
    visit(array->data(), array->size() * sizeof(float));
  }
  visit(groups.correction.data(), groups.correction.size() * sizeof(std::int32_t));
}

}  // namespace

void PackedGroups::write(std::byte* to) const {
  visit_arrays(*this, [&](const void* array, std::size_t size) {
    if (size > 0) std::memcpy(to, array, size);
    to += size;
  });
}

void PackedGroups::read(const std::byte* from) {
  visit_arrays(*this, [&](void* array, std::size_t size) {
    if (size > 0) std::memcpy(array, from, size);
    from += size;
  });
}

PackedPoints::PackedPoints(PackedPoints&& other) noexcept = default;
PackedPoints::~PackedPoints() = default;

PackedPoints::PackedPoints(const Kernel& kernel, std::int64_t columns, std::int64_t begin, std::int64_t end)
    : kernel_(&kernel), base_(begin), packed_(kernel, columns, end - begin) {}

PackedPoints::PackedPoints(const Kernel& kernel, const Form& form, const Form* look, const RowsView& points,
                           std::int64_t begin, std::int64_t end, Errors errors)
    : PackedPoints(kernel, form.columns(), begin, end) {
  Packer packer(kernel, form, packed_, errors);
  std::optional<Packer> looks;  // packs the contracted copy, in the same groups
  if (look != nullptr) {
    const Kernel& other = look_kernel(kernel);
    contracted_.reset(new PackedPoints(other, look->columns(), begin, end));
    contracted_->balls_ = std::make_unique<Balls>(other, *look, packed_.count);
    looks.emplace(other, *look, contracted_->packed_, Errors::measured);
  }
  FormRows read(form, pack_loops(kernel.isa), packed_.group);
  for (std::int64_t group = 0; group < packed_.groups; ++group) {
    const std::int64_t first = group * packed_.group, held = std::min(packed_.group, packed_.count - first);
    read.read(points, base_ + first, held);
    FormRows::expect(points, base_ + first + held, std::min(packed_.group, packed_.count - first - held));
    packer.pack(group, read, held);
    if (!looks) continue;
    looks->pack(group, read, held);
    contracted_->balls_->add(looks->rows(), held);
  }
}

PackedPoints::PackedPoints(const Kernel& kernel, const Form& form, std::int64_t begin, std::int64_t end,
                           const std::byte* from)
    : PackedPoints(kernel, form.columns(), begin, end) {
  packed_.read(from);
}

std::int64_t PackedPoints::bytes_of(const Kernel& kernel, const Form& form, std::int64_t count) {
  const std::int64_t groups = (count + kernel.layout.point_group - 1) / kernel.layout.point_group;
  const std::int64_t row = packed_depth(kernel, form.columns()) * kernel.layout.run * element_size(kernel.precision);
  const std::int64_t places = groups * kernel.layout.point_group, whole = kernel.precision == Precision::int8;
  // The sizes of the arrays that the constructor of PackedGroups makes.
  return places * row + ((places + 16) * (4 + whole) + groups * (2 + whole)) * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t PackedPoints::bytes() const {
  return packed_.bytes() + (balls_ ? balls_->bytes() : 0) + (contracted_ ? contracted_->bytes() : 0);
}

PackedQueries::PackedQueries(const Kernel& kernel, const Form& form, std::int64_t of)
    : count(of), tiles(static_cast<int>((count + kernel.layout.query_tile - 1) / kernel.layout.query_tile)) {
  const auto places = static_cast<std::size_t>(tiles) * static_cast<std::size_t>(kernel.layout.query_tile);
  data = allocate(static_cast<std::int64_t>(places) * packed_depth(kernel, form.columns()) * kernel.layout.run *
                  element_size(kernel.precision));
  norm.assign(places, 0), rest.assign(places, 0), step.assign(places, 0);
  beyond.assign(places, 0), shift.assign(places, 0);
}

PackedQueries::PackedQueries(const Kernel& kernel, const Form& form, const RowsView& queries, std::int64_t begin,
                             std::int64_t end, Errors errors)
    : PackedQueries(kernel, form, end - begin) {
  QueryPacker packer(kernel, form, *this, errors);
  FormRows read(form, pack_loops(kernel.isa), kQueriesAtOnce);
  for (std::int64_t q = 0; q < count; q += kQueriesAtOnce) {
    const std::int64_t held = std::min(kQueriesAtOnce, count - q);
    read.read(queries, begin + q, held);
    packer.pack(q, read, held);
  }
}

PackedQueries::PackedQueries(const Kernel& kernel, const Form& form, const Form& look, const RowsView& queries,
                             std::int64_t begin, std::int64_t end, PackedQueries& contracted)
    : PackedQueries(kernel, form, end - begin) {
  contracted = PackedQueries(look_kernel(kernel), look, count);
  QueryPacker packer(kernel, form, *this, Errors::measured);
  QueryPacker looks(look_kernel(kernel), look, contracted, Errors::measured);
  FormRows read(form, pack_loops(kernel.isa), kQueriesAtOnce);
  for (std::int64_t q = 0; q < count; q += kQueriesAtOnce) {
    const std::int64_t held = std::min(kQueriesAtOnce, count - q);
    read.read(queries, begin + q, held);
    packer.pack(q, read, held);
    looks.pack(q, read, held);
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
