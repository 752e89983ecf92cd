// All points within a radius of each query, through a k-d tree: depth first, over the arrays of
// tonari.kdtree.cpu.tree.
//
// A query's limit is constant. A box or a point whose sum exceeds the limit is skipped, as in kdtree/search.hpp. The
// exact values of all other points decide (docs/exactness.md, "The value"). A count also accepts a whole box if its
// farthest corner is certainly within the radius, and single points that are certainly within it, without their exact
// values (docs/exactness.md, "Within a radius").
//
// Rules are looked up point by point. If the first queries of a block meet many points, a rule with one entry per point
// (its group, or its entry in a mask for all queries) is copied into the order of the tree, in which the points of a leaf
// or of a box are adjacent. Their entries are then compared at once. So are rows of a mask for each query
// (kdtree/tree_masks.hpp), and lists of excluded points (kdtree/tree_excluded.hpp).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/allowed.hpp"
#include "kdtree/search.hpp"
#include "select/order.hpp"

namespace tonari {

// The entries of points in the order of the tree, followed by kTreeWidth more. A query may find a point whose entry
// equals the query's; without `same`, a point whose entry differs.
struct TreeEntries {
  std::vector<std::int64_t> of_points;
  const std::int64_t* of_queries = nullptr;  // entries of queries by their numbers in the rules; null: all are 1
  bool same = true;
  AllowedPairs others;  // all other rules
};
// Copies the points' groups into the order of the tree, or the mask for all queries.
TreeEntries entries_in_tree(const TreeView& tree, std::int64_t n, const AllowedPairs& allowed);

// The entries of points in the order of a tree; made by the first block that needs them.
class SharedEntries {
 public:
  bool are_made() const { return made_.load(std::memory_order_acquire); }
  const TreeEntries& of(const TreeView& tree, std::int64_t points, const AllowedPairs& allowed);

 private:
  std::once_flag once_;
  std::atomic<bool> made_ = false;
  TreeEntries entries_;
};

// Where each point lies in a tree of int32 ids; made by the first block that needs it.
class TreePlaces {
 public:
  bool are_made() const { return made_.load(std::memory_order_acquire); }
  const std::vector<std::int32_t>& of(const TreeView& tree, std::int64_t points);

 private:
  std::once_flag once_;
  std::atomic<bool> made_ = false;
  std::vector<std::int32_t> places_;
};

struct TreeRadiusTask {
  const TreeView* tree = nullptr;
  Metric metric = Metric::euclidean;
  RowsView queries;
  const double* limits = nullptr;          // for each query, the farthest returned value within its radius
  const std::int64_t* order = nullptr;     // the order in which queries are searched; null: as given
  const std::int64_t* self_ids = nullptr;  // for each query, the point that it must not find; null: none
  const AllowedPairs* allowed = nullptr;   // which points each query may find; null: all others
  SharedEntries* entries = nullptr;        // for a part of these rules, in the order of the tree; null: none
  TreePlaces* places = nullptr;            // of the tree's points, if excluded points may be looked up by place
  bool later = false;                      // lists have only points after the query's own
  bool lists = true;                       // false: only counts
  bool double_output = false;
  std::int64_t* counts = nullptr;  // (queries,): receives the counts
};

// A block of queries: [begin, end) of the order.
class TreeRadius {
 public:
  TreeRadius(const TreeRadiusTask& task, std::int64_t begin, std::int64_t end)
      : task_(task), begin_(begin), end_(end), next_(begin) {}
  virtual ~TreeRadius();

  // Continues until the last query, or until it has read about `budget` values of points and boxes. Counts its visits,
  // and returns the number of queries that it has finished.
  virtual std::int64_t run(std::int64_t budget, TreeVisits& visits) = 0;
  bool is_finished() const { return next_ == end_; }
  // The number of points in all lists so far.
  std::int64_t listed() const { return std::ssize(floats_) + std::ssize(doubles_); }
  // Writes each query's list to its place: from indptr[query] on.
  template <class Value, class Index>
  void write(const std::int64_t* indptr, Value* distances, Index* indices) const;

 protected:
  std::int64_t query_at(std::int64_t place) const { return task_.order != nullptr ? task_.order[place] : place; }
  void append(std::span<const Ranked> list);

  const TreeRadiusTask& task_;
  const std::int64_t begin_, end_;
  std::int64_t next_;

 private:
  // All lists, one after another, in the types of the results.
  std::vector<float> floats_;
  std::vector<double> doubles_;
  std::vector<std::int32_t> ids_;
  std::vector<std::int64_t> wide_ids_;
};

using MakeTreeRadius = std::unique_ptr<TreeRadius> (*)(const TreeRadiusTask& task, std::int64_t begin,
                                                       std::int64_t end);
MakeTreeRadius tree_radius(Isa isa);

std::unique_ptr<TreeRadius> tree_radius_generic(const TreeRadiusTask&, std::int64_t, std::int64_t);
#if TONARI_X86
std::unique_ptr<TreeRadius> tree_radius_avx2(const TreeRadiusTask&, std::int64_t, std::int64_t);
std::unique_ptr<TreeRadius> tree_radius_avx512(const TreeRadiusTask&, std::int64_t, std::int64_t);
#elif TONARI_ARM64
std::unique_ptr<TreeRadius> tree_radius_neon(const TreeRadiusTask&, std::int64_t, std::int64_t);
#endif

}  // namespace tonari
