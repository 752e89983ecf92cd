// Thresholds from samples of a row (matsumoto2015 V-A).
//
//   lines of 16 samples or more, each at a scattered place of its own part of the row:
//
//   |....====......|.====.........|.........====.|        n_S samples in all, no value twice
//
// At least k values of the row are at or below the k-th smallest sample. For a sample of lower rank this is very
// likely: of n_S samples, k n_S / n are expected among the k smallest values, with the square root of this number as
// standard deviation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/room.hpp"
#include "select/condense.hpp"
#include "select/scan.hpp"
#include "select/scatter.hpp"

namespace tonari {
namespace {

// The (key, column) pair that values must not exceed: of equal values, later ones are larger.
template <class Key>
struct Threshold {
  Key key = kLastKey<Key>;
  std::int64_t column = std::numeric_limits<std::int32_t>::max();
  bool sampled = false;
};

struct SamplePlan {
  std::int64_t count = 0, rank = 0;  // number of samples, and rank of the threshold among them; rank 0: no samples
  std::int64_t line = 0, parts = 0;
};

template <class Key>
class Samples {
 public:
  explicit Samples(const SelectTask& task) : task_(task), reader_(task) {}

  // `sure`: whether at least k values are certainly at or below the threshold, as in the paper, and not only very
  // likely.
  SamplePlan plan(std::int64_t length, bool sure) const {
    const std::int64_t given = task_.options.samples, k = task_.k;
    // 512 samples take little time, even for small k; samples of more than one value in 16 take more time than they
    // save.
    std::int64_t count = given > 0 ? given : sure ? 8 * k : std::min(std::max(8 * k, kFew), length / 16);
    count = std::min(count, length);
    auto rank = static_cast<double>(k);
    if (!sure && count > 0) {
      const double mean = rank * static_cast<double>(count) / static_cast<double>(length);
      rank = std::min(rank, std::floor(mean + 3 * std::sqrt(mean) + 1.5));
    }
    // with a larger rank, too few values are ruled out
    const double most = static_cast<double>(given > 0 ? count : count / 2);
    if (rank > most) return {};
    // The number of scattered lines determines the cost, so there are about 32.
    const std::int64_t line = std::max(kLine, count / 32 / kLine * kLine), parts = (count + line - 1) / line;
    if (line * parts > length) return {length, static_cast<std::int64_t>(rank), length, 1};
    return {count, static_cast<std::int64_t>(rank), line, parts};
  }

  // Prefetches a row's samples, since reading each line would otherwise wait for memory.
  void fetch(std::int64_t row, const SamplePlan& plan) {
    std::int64_t* starts = starts_.get(plan.parts);
    fetched_row_ = row, fetched_count_ = plan.count;
    with_format<Key>(task_, [&](auto format) {
      const auto* values = row_of<decltype(format)>(task_, row);
      for (std::int64_t part = 0; part < plan.parts; ++part) {
        starts[part] = start_of(row, plan, part);
        if (plan.parts == 1) continue;
        for (std::int64_t i = 0; i < plan.line; i += kLine) __builtin_prefetch(values + starts[part] + i);
      }
    });
  }

  Threshold<Key> take(std::int64_t row, const SamplePlan& plan) {
    if (plan.rank == 0) return {};
    if (fetched_row_ != row || fetched_count_ != plan.count) fetch(row, plan);
    const std::int64_t* starts = starts_.get(0);
    Key* keys = keys_.get(plan.count);
    std::int32_t* columns = columns_.get(plan.count);
    std::int64_t count = 0;
    for (std::int64_t part = 0; part < plan.parts; ++part) {
      const std::int64_t taken = std::min(plan.line, plan.count - count);
      const Key* read = reader_.read(row, starts[part], taken, keys + count);
      if (read != keys + count) std::memcpy(keys + count, read, static_cast<std::size_t>(taken) * sizeof(Key));
      for (std::int64_t i = 0; i < taken; ++i) columns[count + i] = static_cast<std::int32_t>(starts[part] + i);
      count += taken;
    }
    const Pair<Key> found = kth_smallest(keys, columns, count, plan.rank);
    return {found.key, found.column, true};
  }

 private:
  static constexpr std::int64_t kLine = 16;  // adjacent samples: a cache line of float32
  static constexpr std::int64_t kFew = 512;

  std::int64_t start_of(std::int64_t row, const SamplePlan& plan, std::int64_t part) const {
    const std::int64_t spacing = (task_.length(row) << 20) / plan.parts, from = part * spacing >> 20;
    const std::int64_t places = ((part + 1) * spacing >> 20) - from - plan.line + 1;
    return from + scattered(row * plan.parts + part, places);
  }

  const SelectTask& task_;
  KeyReader<Key> reader_;
  Room<Key> keys_;
  Room<std::int32_t> columns_;
  Room<std::int64_t> starts_;
  std::int64_t fetched_row_ = -1, fetched_count_ = 0;  // the row that starts_ belongs to, and its number of samples
};

}  // namespace
}  // namespace tonari
