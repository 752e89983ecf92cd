// Boruvka's rounds over a k-d tree: components of points are joined along the first edge that leaves each of them.
//
// Edges have a total order, by (weight, pair); the pair of an edge is its smaller end times n plus its larger end. The
// weight of an edge is the largest of its distance and the core distances of its ends. In each round, threads find the
// first edge of every component: first among the edges of given neighbour lists, then by a walk through the tree for
// each leaf (leaving_tile.hpp). An edge is offered to both components that it joins. Which edges are offered depends on
// the order in which threads work; the first edge of each component does not, since a walk leaves out only points whose
// edges are after one that was offered.
#pragma once

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/cpu.hpp"
#include "core/metrics.hpp"
#include "kdtree/search.hpp"

namespace tonari {

struct SpanningEdge {
  double weight = std::numeric_limits<double>::infinity();
  std::int64_t pair = std::numeric_limits<std::int64_t>::max();
  bool operator<(const SpanningEdge& other) const {
    return weight < other.weight || (weight == other.weight && pair < other.pair);
  }
};

// The neighbour lists of all points: other points, nearest first; a list with fewer points ends with -1.
struct ListsView {
  std::int64_t k = 0;
  bool double_values = false;
  bool wide_ids = false;
  const void* distances = nullptr;
  const void* indices = nullptr;

  double distance(std::int64_t at) const {
    return double_values ? static_cast<const double*>(distances)[at] : static_cast<const float*>(distances)[at];
  }
  std::int64_t index(std::int64_t at) const {
    return wide_ids ? static_cast<const std::int64_t*>(indices)[at] : static_cast<const std::int32_t*>(indices)[at];
  }
};

// Labels are as wide as the numbers of a tree's rows, so that both share masks.
template <class T>
using LabelOf = std::conditional_t<sizeof(T) == sizeof(double), std::int64_t, std::int32_t>;

struct SpanningTask {
  const TreeView* tree = nullptr;
  Metric metric = Metric::euclidean;
  std::int64_t n = 0;
  bool double_output = false;    // whether distances are float64, not float32
  const double* core = nullptr;  // the core distance of each point, as it is returned
  ListsView lists;
};

class Forest {
 public:
  explicit Forest(const SpanningTask& task);

  // Offers the edges from points [begin, end) to the neighbours in their lists.
  void offer_listed(std::int64_t begin, std::int64_t end);

  // Whether there are several components, and an edge is known for each, as after walks from all leaves.
  bool is_walked() const;

  // Joins the components along their first edges, and begins the next round.
  void merge();

  // Offers an edge that leaves a component; it is kept if it is the first so far.
  void offer(std::int32_t component, const SpanningEdge& edge);
  // The first edge of a component so far; other threads may offer it an earlier one at any time.
  SpanningEdge edge(std::int32_t component) const;
  double weight(std::int32_t component) const;

  std::int64_t pair(std::int64_t i, std::int64_t j) const;
  std::int64_t id_at(std::int64_t place) const;

  // The data that let walks skip children: one item for each child of the nodes of a level, in the type of the tree's
  // rows.
  template <class T>
  struct Below {
    std::vector<LabelOf<T>> labels;  // the component of all points below, or kMixed
    std::vector<T> cores;            // the smallest core distance below
    std::vector<std::int64_t> ids;   // the smallest number below
  };
  static constexpr std::int32_t kMixed = -1;
  // One for each level of boxes, of the tree's type; the other is empty.
  std::vector<Below<float>> below_floats;
  std::vector<Below<double>> below_doubles;

  const SpanningTask task;
  std::int64_t count;                // number of components
  std::vector<std::int32_t> labels;  // the component of the point at each place of the tree
  std::vector<double> cores;         // the core distance of the point at each place
  // For the point at each place, the least weight of an edge that leaves its component and is not in its list.
  std::vector<double> bounds;
  std::vector<SpanningEdge> edges;  // the edges of the spanning tree so far

 private:
  struct Best {
    std::atomic<double> weight = std::numeric_limits<double>::infinity();
    SpanningEdge edge;
  };
  class Guard;
  static constexpr std::size_t kLocks = 1024;

  template <class T>
  void measure_below(std::vector<Below<T>>& below);
  template <class T>
  void label_below(std::vector<Below<T>>& below);

  std::vector<std::int32_t> label_of_;  // the component of the point of each number
  std::unique_ptr<Best[]> best_;
  mutable std::array<std::atomic_flag, kLocks> locks_{};
};

// Walks from leaf `begin` on, until leaf `end` or until it has read about `budget` values of points and boxes; returns
// where it stopped.
using LeavingWalk = std::int64_t (*)(Forest& forest, std::int64_t begin, std::int64_t end, std::int64_t budget);

LeavingWalk leaving_walk(Isa isa);

}  // namespace tonari
