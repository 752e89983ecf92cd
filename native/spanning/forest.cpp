#include "spanning/forest.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

#include "spanning/leaving.hpp"

namespace tonari {

// Holds the lock of a component; several components share a lock.
class Forest::Guard {
 public:
  Guard(std::array<std::atomic_flag, kLocks>& locks, std::int32_t component)
      : lock_(locks[static_cast<std::size_t>(component) % kLocks]) {
    while (lock_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~Guard() { lock_.clear(std::memory_order_release); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  std::atomic_flag& lock_;
};

Forest::Forest(const SpanningTask& given)
    : task(given),
      count(given.n),
      labels(static_cast<std::size_t>(given.n)),
      cores(static_cast<std::size_t>(given.n)),
      bounds(static_cast<std::size_t>(given.n)),
      label_of_(static_cast<std::size_t>(given.n)),
      best_(std::make_unique<Best[]>(static_cast<std::size_t>(given.n))) {
  edges.reserve(static_cast<std::size_t>(given.n));
  std::iota(label_of_.begin(), label_of_.end(), 0);
  const std::int64_t k = task.lists.k;
  for (std::int64_t place = 0; place < task.n; ++place) {
    const std::int64_t id = id_at(place);
    const auto at = static_cast<std::size_t>(place);
    labels[at] = static_cast<std::int32_t>(id);
    cores[at] = task.core[id];
    const bool whole = k >= task.n - 1;  // whether lists contain all points
    bounds[at] = whole ? std::numeric_limits<double>::infinity() : task.lists.distance((id + 1) * k - 1);
  }
  if (task.tree->double_rows) measure_below(below_doubles);
  else measure_below(below_floats);
}

void Forest::offer(std::int32_t component, const SpanningEdge& offered) {
  Best& best = best_[static_cast<std::size_t>(component)];
  if (offered.weight > best.weight.load(std::memory_order_relaxed)) return;
  const Guard guard(locks_, component);
  if (!(offered < best.edge)) return;
  best.edge = offered;
  best.weight.store(offered.weight, std::memory_order_relaxed);
}

SpanningEdge Forest::edge(std::int32_t component) const {
  const Guard guard(locks_, component);
  return best_[static_cast<std::size_t>(component)].edge;
}

double Forest::weight(std::int32_t component) const {
  return best_[static_cast<std::size_t>(component)].weight.load(std::memory_order_relaxed);
}

std::int64_t Forest::pair(std::int64_t i, std::int64_t j) const { return i < j ? i * task.n + j : j * task.n + i; }

std::int64_t Forest::id_at(std::int64_t place) const {
  return task.tree->wide_ids ? static_cast<const std::int64_t*>(task.tree->ids)[place]
                             : static_cast<const std::int32_t*>(task.tree->ids)[place];
}

void Forest::offer_listed(std::int64_t begin, std::int64_t end) {
  const ListsView& lists = task.lists;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int32_t own = label_of_[static_cast<std::size_t>(i)];
    const double core = task.core[i];
    for (std::int64_t at = i * lists.k; at < (i + 1) * lists.k; ++at) {
      const double distance = lists.distance(at);
      if (std::max(core, distance) > weight(own)) break;  // all later entries of the list are heavier, too
      const std::int64_t j = lists.index(at);
      if (j < 0) break;
      const std::int32_t other = label_of_[static_cast<std::size_t>(j)];
      if (other == own) continue;
      const SpanningEdge found{std::max({distance, core, task.core[j]}), pair(i, j)};
      offer(own, found);
      offer(other, found);
    }
  }
}

bool Forest::is_walked() const {
  const Best* const first = best_.get();
  return count == 1 || std::all_of(first, first + count, [](const Best& best) { return best.edge < SpanningEdge{}; });
}

void Forest::merge() {
  if (count == 1) return;

  const auto n = static_cast<std::size_t>(count);
  std::vector<std::int32_t> above(n);
  std::iota(above.begin(), above.end(), 0);
  const auto top = [&](std::int32_t at) {
    while (above[static_cast<std::size_t>(at)] != at) {
      auto& next = above[static_cast<std::size_t>(at)];
      at = next = above[static_cast<std::size_t>(next)];
    }
    return at;
  };
  for (std::size_t component = 0; component < n; ++component) {
    const SpanningEdge& first = best_[component].edge;
    const auto left = label_of_[static_cast<std::size_t>(first.pair / task.n)];
    const auto right = label_of_[static_cast<std::size_t>(first.pair % task.n)];
    const std::int32_t one = top(left), other = top(right);
    if (one == other) continue;  // the edge was already added from its other end; the total order allows no other cycle
    above[static_cast<std::size_t>(std::max(one, other))] = std::min(one, other);
    edges.push_back(first);
  }
  std::vector<std::int32_t> numbers(n);
  std::int32_t left = 0;
  for (std::size_t component = 0; component < n; ++component) {  // the root of a component is its smallest number
    const std::int32_t above_all = top(static_cast<std::int32_t>(component));
    const bool is_top = static_cast<std::size_t>(above_all) == component;
    numbers[component] = is_top ? left++ : numbers[static_cast<std::size_t>(above_all)];
  }
  for (std::int32_t& label : label_of_) label = numbers[static_cast<std::size_t>(label)];
  for (std::int32_t& label : labels) label = numbers[static_cast<std::size_t>(label)];
  count = left;
  for (std::size_t component = 0; component < static_cast<std::size_t>(count); ++component) {
    best_[component].edge = SpanningEdge{};
    best_[component].weight.store(SpanningEdge{}.weight, std::memory_order_relaxed);
  }
  if (task.tree->double_rows) label_below(below_doubles);
  else label_below(below_floats);
}

// Computes the data that do not change between rounds, and the labels of the first round.
template <class T>
void Forest::measure_below(std::vector<Below<T>>& below) {
  const TreeView& tree = *task.tree;
  std::int64_t children = std::int64_t{1} << tree.height;
  for (std::size_t level = 0; level < tree.boxes.size(); ++level) {
    const std::int64_t nodes = (children + kTreeWidth - 1) / kTreeWidth;
    const auto size = static_cast<std::size_t>(nodes * kTreeWidth);
    Below<T> made;
    made.labels.assign(size, kMixed);
    made.cores.assign(size, std::numeric_limits<T>::infinity());
    made.ids.assign(size, std::numeric_limits<std::int64_t>::max());
    for (std::int64_t child = 0; child < children; ++child) {
      double core = std::numeric_limits<double>::infinity();
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      if (level == 0) {
        for (std::int64_t place = tree.begins[child]; place < tree.begins[child + 1]; ++place) {
          core = std::min(core, cores[static_cast<std::size_t>(place)]);
          least = std::min(least, id_at(place));
        }
      } else {
        for (std::int64_t lane = child * kTreeWidth; lane < (child + 1) * kTreeWidth; ++lane) {
          core = std::min(core, static_cast<double>(below[level - 1].cores[static_cast<std::size_t>(lane)]));
          least = std::min(least, below[level - 1].ids[static_cast<std::size_t>(lane)]);
        }
      }
      // The conversion is exact: a tree of float32 has distances of float32.
      made.cores[static_cast<std::size_t>(child)] = static_cast<T>(core);
      made.ids[static_cast<std::size_t>(child)] = least;
    }
    below.push_back(std::move(made));
    children = nodes;
  }
  label_below(below);
}

template <class T>
void Forest::label_below(std::vector<Below<T>>& below) {
  const TreeView& tree = *task.tree;
  std::int64_t children = std::int64_t{1} << tree.height;
  for (std::size_t level = 0; level < below.size(); ++level) {
    for (std::int64_t child = 0; child < children; ++child) {
      // Absent children have the largest number, and are skipped.
      LabelOf<T> label = kMixed;
      bool first = true;
      const auto meet = [&](LabelOf<T> other) {
        if (first) label = other;
        else if (other != label) label = kMixed;
        first = false;
      };
      if (level == 0) {
        for (std::int64_t place = tree.begins[child]; place < tree.begins[child + 1]; ++place) {
          meet(labels[static_cast<std::size_t>(place)]);
        }
      } else {
        const Below<T>& lower = below[level - 1];
        for (std::int64_t lane = child * kTreeWidth; lane < (child + 1) * kTreeWidth; ++lane) {
          const auto at = static_cast<std::size_t>(lane);
          if (lower.ids[at] != std::numeric_limits<std::int64_t>::max()) meet(lower.labels[at]);
        }
      }
      below[level].labels[static_cast<std::size_t>(child)] = label;
    }
    children = (children + kTreeWidth - 1) / kTreeWidth;
  }
}

LeavingWalk leaving_walk(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return leaving_walk_avx512;
  if (isa >= Isa::avx2) return leaving_walk_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return leaving_walk_neon;
#endif
  (void)isa;
  return leaving_walk_generic;
}

}  // namespace tonari
