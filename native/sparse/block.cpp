#include "sparse/block.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tonari {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kMargin = 1 + 0x1p-20;       // covers the roundings of norms and of half the squared lengths
constexpr double kTiny = 0x1p-100;            // exceeds the errors of all underflows
constexpr std::int64_t kMostTerms = 600'000;  // most terms of a sum for which the error bound holds
constexpr std::int64_t kAhead = 8;            // number of rare lists that are prefetched ahead
constexpr std::int64_t kTermsOfLine = 8;      // terms in a cache line of 64 bytes
constexpr std::int64_t kPiece = 512;          // number of points between two updates of the threshold
constexpr std::size_t kSpare = 64;            // a list is condensed when it has this many candidates more than 2 k
constexpr std::size_t kMostSpare = 512;       // if this many remain, their exact values are computed
constexpr float kSetError = 0x1p-20f;         // of a key of sets; keys whose float32 distances tie differ by less
constexpr double kLeastNarrow = 0x1p-149;     // the least positive float32 number
constexpr double kMostNarrow = std::numeric_limits<float>::max();
constexpr double kLeastSquare = 0x1p-273;   // squares of distances that round to the same small number differ by less
constexpr double kSetMargin = 1 - 0x1p-18;  // covers the roundings of the loops over sets
// Costs of the screen, in additions of one element of an inverted list. Not measured closely.
constexpr double kDenseCost = 0.15;    // one element of a dense column
constexpr double kCompletedCost = 40;  // one point that is completed alone, without its entries
constexpr double kEntryCost = 1.5;     // one entry of such a point
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

SparseBlock::SparseBlock(Isa isa, const SparsePoints& points, const SparseRows& queries, const std::int32_t* ranks,
                         std::int64_t begin, std::int64_t end, const SparseRequest& request)
    : sweeps_(sparse_sweeps(isa)),
      points_(points),
      rows_(queries),
      ranks_(ranks),
      first_(begin),
      request_(request),
      queries_(static_cast<std::size_t>(end - begin)),
      sums_(static_cast<std::size_t>(kSparseBlock)),
      survivors_(static_cast<std::size_t>(kSparseBlock)),
      spread_(static_cast<std::size_t>(points.bound[kRare])),
      answers_(queries_.size()),
      found_(queries_.size()) {
  for (std::int64_t row = begin; row < end; ++row) {
    Query& query = queries_[static_cast<std::size_t>(row - begin)];
    prepare(row, query);
    if (request_.allowed != nullptr) query.allowed.open(*request_.allowed, row);
  }
}

void SparseBlock::prepare(std::int64_t row, Query& query) {
  const Metric metric = points_.metric;
  const bool cosine = is_angular(metric);
  const std::int64_t begin = rows_.indptr[row], end = rows_.indptr[row + 1];
  query.square = sparse_square(rows_, row);
  double scale = points_.scale, factor = 1;
  const bool empty = begin == end || (cosine && query.square == 0);
  bool screened = points_.screened && (empty || query.square >= kShortest * kShortest);
  if (cosine) {
    factor = screened && !empty ? 1.0 / std::sqrt(query.square) : 0.0;
  } else if (!empty && screened && !points_.sets) {
    int exponent = 0;
    std::frexp(std::sqrt(query.square) * kMargin, &exponent);
    scale = std::ldexp(1.0, exponent);
    if (points_.has_squares()) scale = std::max(scale, points_.scale);
    factor = 1.0 / scale;
  }

  query.begin = static_cast<std::int64_t>(entry_ranks_.size());
  std::vector<std::pair<std::int32_t, float>> entries;
  double whole = 0;
  bool positive = true;
  for (std::int64_t i = begin; i < end && screened; ++i) {
    const auto weight = static_cast<float>(rows_.at(i) * factor);
    whole += static_cast<double>(weight) * weight;
    if (ranks_[i] < 0) continue;
    positive = positive && weight >= kLeastFactor;
    if (!empty) entries.emplace_back(ranks_[i], weight);
  }
  std::sort(entries.begin(), entries.end());
  double part = 0;
  std::size_t next = 0;
  for (int level = 0; level < kSparseBounds; ++level) {
    double work = level == 0 ? 0 : query.work[level - 1];
    for (; next < entries.size() && entries[next].first < points_.bound[level]; ++next) {
      const auto [rank, weight] = entries[next];
      part += static_cast<double>(weight) * weight;
      work += level == 0 ? kDenseCost
                         : static_cast<double>(points_.counts[static_cast<std::size_t>(rank)]) /
                               static_cast<double>(std::max<std::int64_t>(1, points_.rows.n));
    }
    query.split[level] = query.begin + static_cast<std::int64_t>(next);
    query.rest[level] = at_least(std::sqrt(part) * kMargin);
    query.work[level] = work;
  }
  for (const auto& [rank, weight] : entries) {
    entry_ranks_.push_back(rank);
    entry_weights_.push_back(weight);
    const bool rare = rank >= points_.bound[kRare];
    const std::int64_t* start = points_.starts.data() + (rare ? rank - points_.bound[kRare] : 0);
    cursors_.push_back(rare ? start[0] : 0);
    lasts_.push_back(rare ? start[1] : 0);
  }
  query.end = static_cast<std::int64_t>(entry_ranks_.size());

  const std::int64_t terms = std::min(end - begin, points_.most_entries);
  screened = screened && terms <= kMostTerms;
  const double length = std::sqrt(whole) * kMargin;
  query.error = screened ? at_least(1.05 * static_cast<double>(terms + 16) * kUnit * length) : kInfinity;
  double slack = 2 * kTiny;
  if (points_.has_squares()) {
    const double half_scale = points_.scale / scale;
    query.half_scale = static_cast<float>(half_scale * (2 - kMargin));
    query.half_scale_above = at_least(half_scale * kMargin);
    slack += whole / half_scale * (5 * kUnit);  // twice the rounding of the part of |q|^2 in a returned value
  }
  // Small values that round to the same float32 number tie.
  if (request_.narrow && !cosine) {
    slack += (takes_root(metric) ? kLeastSquare : kLeastNarrow) / scale / points_.scale;
  }
  query.slack = screened ? at_least(slack) : kInfinity;
  query.zeros_tie = screened && !points_.has_squares() && (empty || (positive && points_.positive));
  if (points_.sets) {
    query.error = screened ? 0.0f : kInfinity;
    query.slack = kSetError;
    query.zeros_tie = !empty;
  }
  query.scale = scale;
  query.screened = screened;
  query.most = kInfinity;
  query.room = 2 * static_cast<std::size_t>(request_.k) + kSpare;
  if (request_.limits != nullptr) query.most = key_within(query, request_.limits[row - first_]);
}

// The threshold of keys at which all values up to a limit are found; it includes the error margins of both rows.
float SparseBlock::key_within(const Query& query, double limit) const {
  if (!query.screened) return kInfinity;
  if (points_.sets) {
    const double similarity = 1 - limit;
    if (limit < 0) return -kInfinity;
    return similarity <= 0 ? kInfinity : at_least(query.slack - similarity / (1 + similarity));
  }
  const double scale = query.scale;
  if (request_.narrow) {
    limit = is_descending(points_.metric) ? std::min(limit, kMostNarrow) - kLeastNarrow : limit + kLeastNarrow;
  }
  double most = limit - 1 + 0x1p-40;
  if (is_descending(points_.metric)) most = -limit / scale / points_.scale;
  if (points_.has_squares()) {
    const bool root = takes_root(points_.metric);
    const double square = (root ? limit * limit : limit) * kMargin;
    most =
        (square - query.square) / 2 / scale / points_.scale + (square + query.square) * 0x1p-40 / scale / points_.scale;
    if (limit < 0) most = -std::numeric_limits<double>::infinity();
  }
  return at_least(most + query.slack);
}

SparseBounds SparseBlock::bounds_of(const Query& query, std::int64_t begin) const {
  float half_scale = query.half_scale;
  if (points_.sets) {
    const double ratio = -static_cast<double>(query.most) - query.slack;
    half_scale = ratio > 0 ? static_cast<float>(std::min(ratio, 1.0) * kSetMargin) : 0;
  }
  return {.sums = sums_.data(),
          .half = points_.half.empty() ? nullptr : points_.half.data() + begin,
          .reach = points_.reach.empty() ? nullptr : points_.reach.data() + begin,
          .rest = nullptr,
          .half_scale = half_scale,
          .error = query.error,
          .rest_scale = 0};
}

// The threshold for the lower bounds of a block's points: that of keys, or for sets the one that fits half_scale.
float SparseBlock::threshold_of(const Query& query) const {
  if (!points_.sets) return query.most;
  return at_least(-static_cast<double>(bounds_of(query, 0).half_scale) * query.square * kSetMargin);
}

// Finds a block's lists of the query's frequent entries, and prefetches their beginnings, which are rarely in a cache.
void SparseBlock::find_lists(const Query& query, std::int64_t block) {
  const std::int64_t* marks = points_.marks.data() + block * (points_.frequent() + 1) - points_.bound[0];
  lists_.clear();
  lists_first_ = query.split[0];
  for (std::int64_t i = query.split[0]; i < query.split[kRare]; ++i) {
    const std::int32_t rank = entry_ranks_[static_cast<std::size_t>(i)];
    const SparseTerm* first = points_.frequent_terms.data() + marks[rank];
    lists_.emplace_back(first, points_.frequent_terms.data() + marks[rank + 1]);
    __builtin_prefetch(first);
    __builtin_prefetch(first + kTermsOfLine);
  }
}

// Adds the products of frequent entries [first, last), whose lists find_lists() has found.
void SparseBlock::add_frequent(std::int64_t first, std::int64_t last) {
  float* sums = sums_.data();
  for (std::int64_t i = first; i < last; ++i) {
    const float weight = entry_weights_[static_cast<std::size_t>(i)];
    const auto [begin, end] = lists_[static_cast<std::size_t>(i - lists_first_)];
    for (const SparseTerm* term = begin; term < end; ++term) sums[term->point] += weight * term->weight;
  }
}

void SparseBlock::add_rare(std::int64_t entry, std::int64_t begin, std::int64_t end) {
  const auto at = static_cast<std::size_t>(entry);
  const float weight = entry_weights_[at];
  const std::int64_t last = lasts_[at];
  const SparseTerm* terms = points_.rare_terms.data();
  float* sums = sums_.data();
  std::int64_t i = cursors_[at];
  while (i < last && terms[i].point < begin) ++i;  // skips entries of blocks that were left out
  for (; i < last && terms[i].point < end; ++i) sums[terms[i].point - begin] += weight * terms[i].weight;
  cursors_[at] = i;
}

void SparseBlock::scan(std::int64_t block) {
  const std::int64_t begin = block * kSparseBlock, end = std::min(begin + kSparseBlock, points_.rows.n);
  const std::int64_t length = end - begin;
  for (std::int64_t at = 0; at < count(); ++at) {
    if (request_.later && end <= first_ + at) continue;
    Query& query = queries_[static_cast<std::size_t>(at)];
    std::fill_n(sums_.data(), length, 0.0f);
    find_lists(query, block);
    for (std::int64_t i = query.split[kRare]; i < query.end; ++i) {
      const auto ahead = static_cast<std::size_t>(std::min(i + kAhead, query.end - 1));
      __builtin_prefetch(points_.rare_terms.data() + cursors_[ahead]);
      add_rare(i, begin, end);
    }
    bool done = false;
    for (int level = kSparseBounds - 1; level >= 0 && !done; --level) {
      if (query.split[level] > query.begin && query.most < kInfinity) done = complete(at, level, begin, length);
      if (done || level == 0) continue;
      add_frequent(query.split[level - 1], query.split[level]);
    }
    if (done) continue;
    columns_.clear();
    for (std::int64_t i = query.begin; i < query.split[0]; ++i) {
      columns_.push_back(points_.heavy.data() + begin * points_.bound[0] +
                         entry_ranks_[static_cast<std::size_t>(i)] * length);
    }
    sweeps_.add(sums_.data(), length, columns_.data(), entry_weights_.data() + query.begin,
                static_cast<std::int64_t>(columns_.size()));
    for (std::int64_t piece = 0; piece < length; piece += kPiece) {
      const std::int64_t found = sweeps_.collect(bounds_of(query, begin), piece, std::min(piece + kPiece, length),
                                                 threshold_of(query), survivors_.data(), kSparseBlock);
      for (std::int64_t i = 0; i < found; ++i) {
        const std::int64_t place = survivors_[static_cast<std::size_t>(i)];
        keep(at, begin, begin + place, sums_[static_cast<std::size_t>(place)]);
      }
    }
  }
}

// If only few points can still be candidates, completes their products one by one; returns whether it did.
bool SparseBlock::complete(std::int64_t at, std::int64_t level, std::int64_t begin, std::int64_t length) {
  Query& query = queries_[static_cast<std::size_t>(at)];
  const double average = static_cast<double>(points_.row_ranks.size()) / static_cast<double>(points_.rows.n);
  const auto room = static_cast<std::int64_t>(query.work[level] * static_cast<double>(length) /
                                              (kCompletedCost + kEntryCost * average));
  SparseBounds bounds = bounds_of(query, begin);
  bounds.rest = points_.rest[level].data() + begin;
  bounds.rest_scale = query.rest[level];
  const std::int64_t found =
      sweeps_.collect(bounds, 0, length, threshold_of(query), survivors_.data(), std::min(room, length));
  if (found < 0) return false;
  if (found == 0) return true;
  for (std::int64_t i = query.begin; i < query.split[level]; ++i) {
    spread_[static_cast<std::size_t>(entry_ranks_[static_cast<std::size_t>(i)])] =
        entry_weights_[static_cast<std::size_t>(i)];
  }
  for (std::int64_t i = 0; i < found; ++i) {
    const std::int64_t point = begin + survivors_[static_cast<std::size_t>(i)];
    float sum = sums_[static_cast<std::size_t>(point - begin)];
    const auto row = static_cast<std::size_t>(point);
    for (std::int64_t entry = points_.row_starts[row]; entry < points_.row_starts[row + 1]; ++entry) {
      const std::int32_t rank = points_.row_ranks[static_cast<std::size_t>(entry)];
      if (rank >= points_.bound[level]) break;
      sum += spread_[static_cast<std::size_t>(rank)] * points_.row_weights[static_cast<std::size_t>(entry)];
    }
    keep(at, begin, point, sum);
  }
  for (std::int64_t i = query.begin; i < query.split[level]; ++i) {
    spread_[static_cast<std::size_t>(entry_ranks_[static_cast<std::size_t>(i)])] = 0;
  }
  return true;
}

void SparseBlock::keep(std::int64_t at, std::int64_t begin, std::int64_t point, float sum) {
  Query& query = queries_[static_cast<std::size_t>(at)];
  const std::int64_t own = first_ + at;
  if ((request_.own && point == own) || (request_.later && point <= own)) return;
  float low = 0, high = 0;
  if (points_.sets) {
    const double both = query.square + points_.squares[static_cast<std::size_t>(point)];
    const auto ratio = static_cast<float>(both > 0 ? sum / both : 0.5);  // two empty sets are at distance 0
    low = query.screened ? -ratio - query.slack : -kInfinity;
    high = query.screened ? -ratio + query.slack : kInfinity;
  } else {
    const SparseBounds bounds = bounds_of(query, begin);
    const std::int64_t place = point - begin;
    const float half = bounds.half == nullptr ? 0 : bounds.half[place];
    const float error = bounds.error * (bounds.reach == nullptr ? 1 : bounds.reach[place]);
    low = query.half_scale * half - sum - error;
    high = query.half_scale_above * half - sum + error + query.slack;
  }
  if (low > query.most) return;
  if (request_.left != nullptr && !request_.left[point]) return;
  if (request_.allowed != nullptr && !allows(query.allowed, point)) return;
  if (query.zeros_tie && sum == 0 && request_.k > 0) {
    if (query.zeros == request_.k) return;  // k points with this value and smaller numbers are found already
    ++query.zeros;
  }
  query.candidates.push_back({low, high, static_cast<std::int32_t>(point)});
  if (query.candidates.size() >= query.room) condense(at);
}

// Makes room in a full list of candidates.
void SparseBlock::condense(std::int64_t at) {
  Query& query = queries_[static_cast<std::size_t>(at)];
  auto& all = query.candidates;
  const auto k = static_cast<std::size_t>(request_.k);
  if (k > 0 && all.size() >= k) {
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(all.begin(), last, all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.high < b.high; });
    query.most = std::min(query.most, last->high);
    std::erase_if(all, [&](const Candidate& one) { return one.low > query.most; });
  }
  if (all.size() > k + kMostSpare / 2) settle(at);
  query.room = std::max(2 * k + kSpare, std::min(2 * all.size(), 2 * k + kMostSpare));
}

double SparseBlock::value_of(std::int64_t at, std::int64_t point) const {
  if (points_.sets) return sparse_jaccard(rows_, first_ + at, points_.rows, point);
  const double value = sparse_value(points_.metric, rows_, first_ + at, queries_[static_cast<std::size_t>(at)].square,
                                    points_.rows, point, points_.squares[static_cast<std::size_t>(point)]);
  return request_.narrow ? static_cast<double>(static_cast<float>(value)) : value;
}

// Computes the exact values of all candidates. Answers keep only what the query accepts, and at most the k nearest.
void SparseBlock::settle(std::int64_t at) {
  Query& query = queries_[static_cast<std::size_t>(at)];
  const bool descending = is_descending(points_.metric);
  auto& answers = answers_[static_cast<std::size_t>(at)];
  for (const Candidate& one : query.candidates) {
    const double value = value_of(at, one.id);
    if (request_.limits != nullptr) {
      const double limit = request_.limits[at];
      if (!(descending ? value >= limit : value <= limit)) continue;
    }
    ++found_[static_cast<std::size_t>(at)];
    if (!request_.counted) answers.emplace_back(descending ? -value : value, one.id);
  }
  refined_ += static_cast<std::int64_t>(query.candidates.size());
  query.candidates.clear();
  if (request_.k == 0) return;
  if (static_cast<std::int64_t>(answers.size()) >= request_.k) {
    const auto last = answers.begin() + request_.k;
    std::nth_element(answers.begin(), last - 1, answers.end());
    answers.erase(last, answers.end());
    found_[static_cast<std::size_t>(at)] = request_.k;
    const double worst = answers.back().first;
    query.most = std::min(query.most, key_within(query, descending ? -worst : worst));
  }
  answers.shrink_to_fit();
}

void SparseBlock::refine(std::int64_t begin, std::int64_t end) {
  for (std::int64_t at = begin; at < end; ++at) {
    if (request_.k > 0) condense(at);
    settle(at);
    std::vector<Candidate>().swap(queries_[static_cast<std::size_t>(at)].candidates);
    auto& answers = answers_[static_cast<std::size_t>(at)];
    std::sort(answers.begin(), answers.end());
  }
}

template <class Value>
void SparseBlock::write(Value* distances, std::int32_t* indices) {
  const bool descending = is_descending(points_.metric);
  for (auto& answers : answers_) {
    for (const auto& [value, id] : answers) {
      *distances++ = static_cast<Value>(descending ? 0 - value : value);  // never -0
      *indices++ = id;
    }
    std::vector<std::pair<double, std::int32_t>>().swap(answers);
  }
  std::fill(found_.begin(), found_.end(), 0);
}

template void SparseBlock::write(float*, std::int32_t*);
template void SparseBlock::write(double*, std::int32_t*);

}  // namespace tonari
