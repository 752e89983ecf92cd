#include "missing/block.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/at_least.hpp"
#include "core/rows.hpp"

namespace tonari {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kMargin = 1 + 0x1p-20;       // covers the roundings of bounds, and of their evaluation in float32
constexpr std::int64_t kMostTerms = 1 << 20;  // most terms of a sum for which gamma holds
constexpr double kUnderflow = 0x1p-520;       // covers squares that underflow in a float64 value
constexpr float kSumUnderflow = 0x1p-100f;    // covers squares that underflow in a float32 sum
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kAny = std::numeric_limits<double>::infinity();

std::int64_t padded(std::int64_t d) { return (d + kLanes - 1) / kLanes * kLanes; }

}  // namespace

MissingBlock::MissingBlock(Isa isa, const MissingPoints& points, const RowsView& queries, const MissingRequest& request)
    : loops_(missing_loops(isa)),
      points_(points),
      request_(request),
      width_(padded(queries.d)),
      rows_(static_cast<std::size_t>(queries.n * width_), std::numeric_limits<double>::quiet_NaN()),
      values_(static_cast<std::size_t>(queries.n * queries.d)),
      columns_(values_.size()),
      present_(static_cast<std::size_t>(queries.n * missing_words(queries.d))),
      queries_(static_cast<std::size_t>(queries.n)) {
  const std::int64_t d = queries.d, words = missing_words(d);
  std::vector<float> moved(static_cast<std::size_t>(d));
  for (std::int64_t i = 0; i < queries.n; ++i) {
    Query& query = queries_[static_cast<std::size_t>(i)];
    double* const row = rows_.data() + i * width_;
    float* const values = values_.data() + i * d;
    std::int32_t* const columns = columns_.data() + i * d;
    std::uint64_t* const present = present_.data() + i * words;
    load_row(queries, i, row);
    query.error = points.form.transform(row, moved.data());
    std::int64_t count = 0;
    for (std::int64_t c = 0; c < d; ++c) {
      if (std::isnan(row[c])) continue;
      present[c / 64] |= std::uint64_t{1} << (c % 64);
      columns[count] = static_cast<std::int32_t>(c);
      values[count++] = moved[static_cast<std::size_t>(c)];
    }
    query.screened = {.values = values, .columns = columns, .count = count, .present = present, .words = words};
    const double terms = static_cast<double>(count + 4) * kUnit;
    query.growth = (1 + terms / (1 - std::min(terms, 0.5))) * kMargin;
    query.root = std::sqrt(static_cast<double>(count)) * kMargin;
    if (request.k > 0) query.pairs.reserve(static_cast<std::size_t>(request.k));
    query.own = request.own == nullptr ? -1 : request.own[i];
    limit_to(query, request.limits == nullptr ? kAny : request.limits[i]);
  }
}

// Sets the bounds of the screen so that all points of at most this returned value remain.
void MissingBlock::limit_to(Query& query, double value) {
  query.limit = value;
  if (query.screened.count > kMostTerms) value = kAny;
  const double near = std::max(value, 0.0), d = static_cast<double>(points_.rows.d);
  const double above = request_.narrow ? std::nextafter(at_least(near), kInfinity) : std::nextafter(near, kAny);
  const double root = (above / std::sqrt(d) * (1 + (d + 40) * 0x1p-52) + kUnderflow) * points_.form.scale;
  // Not less than these, because products of subnormal numbers take many times as long.
  query.slope = std::max(at_least(root * root * query.growth), kSumUnderflow);
  query.reach = std::max(at_least(2 * root * query.root * query.growth), kSumUnderflow);
}

void MissingBlock::scan(std::int64_t begin, std::int64_t end) {
  const std::int64_t n = points_.rows.n, d = points_.rows.d, words = missing_words(d);
  for (std::int64_t group = begin; group < end; ++group) {
    const std::int64_t first = group * kMissingGroup, last = std::min(first + kMissingGroup, n);
    const MissingGroup here{.values = points_.values.data() + group * d * kMissingGroup,
                            .present = points_.present.data() + group * words * kMissingGroup};
    const float error = points_.errors[static_cast<std::size_t>(group)];
    for (std::size_t at = 0; at < queries_.size(); ++at) {
      const Query& query = queries_[at];
      if (request_.later && last <= query.own + 1) continue;
      const float both = query.error + error;
      const float offset = (query.reach * both + both * both * static_cast<float>(query.growth)) * 0x1.001p0f;
      std::uint64_t near = loops_.screen(here, query.screened, query.slope, offset + kSumUnderflow);
      for (; near != 0; near &= near - 1) keep(at, first + std::countr_zero(near));
    }
  }
}

void MissingBlock::keep(std::size_t at, std::int64_t point) {
  Query& query = queries_[at];
  if (request_.own != nullptr && (point == query.own || (request_.later && point < query.own))) return;
  const double* const row = rows_.data() + static_cast<std::int64_t>(at) * width_;
  double value = loops_.value(row, row_pointer(points_.rows, point), points_.rows.dtype, points_.rows.d);
  ++refined_;
  if (std::isnan(value)) return;
  if (request_.narrow) value = static_cast<float>(value);
  const bool nearest = request_.k > 0;
  const auto k = static_cast<std::size_t>(request_.k);
  // Points are scanned in ascending order, so a full list is entered only by values below its largest.
  const bool full = nearest && query.pairs.size() == k;
  if (full ? !(value < query.limit) : !(value <= query.limit)) return;
  if (request_.counted || !full) ++query.found;
  if (request_.counted) return;
  if (full) {
    std::pop_heap(query.pairs.begin(), query.pairs.end());
    query.pairs.back() = {value, point};
  } else {
    query.pairs.emplace_back(value, point);
  }
  if (!nearest) return;
  std::push_heap(query.pairs.begin(), query.pairs.end());
  if (query.pairs.size() == k) limit_to(query, query.pairs.front().first);
}

template <class Value, class Index>
void MissingBlock::write(Value* distances, Index* indices) {
  for (Query& query : queries_) {
    std::sort(query.pairs.begin(), query.pairs.end());
    for (const auto& [value, point] : query.pairs) {
      *distances++ = static_cast<Value>(value);
      *indices++ = static_cast<Index>(point);
    }
    std::vector<Pair>().swap(query.pairs);
    query.found = 0;
  }
}

template void MissingBlock::write(float*, std::int32_t*);
template void MissingBlock::write(float*, std::int64_t*);
template void MissingBlock::write(double*, std::int32_t*);
template void MissingBlock::write(double*, std::int64_t*);

void missing_values(Isa isa, const RowsView& queries, const RowsView& points, const std::int64_t* rows,
                    const std::int64_t* ids, std::int64_t count, double* values) {
  const MissingLoops& loops = missing_loops(isa);
  std::vector<double> query(static_cast<std::size_t>(padded(queries.d)), std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t i = 0; i < count; ++i) {
    if (i == 0 || rows[i] != rows[i - 1]) load_row(queries, rows[i], query.data());
    values[i] = loops.value(query.data(), row_pointer(points, ids[i]), points.dtype, points.d);
  }
}

}  // namespace tonari
