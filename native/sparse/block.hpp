// A block of sparse queries among sparse points: the k nearest points of each, or all within a limit.
//
// The screen compares keys in float32, where smaller is nearer. With the scaled rows q', x' of sparse/points.hpp,
//
//     key  =  - <q', x'>                              cosine, inner_product
//     key  =  half_scale |x'|^2 / 2 - <q', x'>        sqeuclidean, euclidean: (|q - x|^2 - |q|^2) / (2 scale scale_of_q)
//
// A sum of s products in float32, in any order, is within gamma_s |q'| |x'| of their sum (docs/exactness.md), so with
//
//     error  =  1.05 (s + 16) 2^-24 |q'|,      s = the entries of the query, or of the longest point if it has fewer
//
// key - error |x'| and key + error |x'| are bounds of the key. A point whose lower bound is above the k-th smallest upper
// bound is not among the k nearest. All others get their float64 value (sparse/rows.hpp), which alone decides.
//
// For sets of a and b columns, of which c are shared, the Jaccard distance 1 - c / (a + b - c) ascends with
//
//     key  =  - c / (a + b),
//
// which float32 has with an error below kSetError; c itself has none. Among points whose key is at most -r,
// r b - c <= -r a, so the loops over a block compare  half_scale half - sum  with a threshold for sets too; both follow
// from the threshold of keys.
//
// For each block of points, a query adds its columns from the rarest to the most frequent. The columns that remain
// after a level add at most the product of the norms of the remaining parts of both rows. Points that this bound rules
// out need no more columns; if only few points are left, they are completed one by one from their rows.
//
// A list of candidates has a bounded length: if too many remain, for example because they tie, their exact values are
// computed before the other points are screened, and the k-th exact value then bounds the keys as well.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/allowed.hpp"
#include "sparse/points.hpp"
#include "sparse/rows.hpp"
#include "sparse/sweeps.hpp"

namespace tonari {

// The conditions of a search. k: only the k nearest points are found; 0 for all, which needs limits. limits: the
// largest value (for inner_product: the smallest) that each query accepts; null for any. own: query i is point i, and
// does not find itself. later: a query finds only points after itself. counted: points are counted, and not stored.
// allowed: the points that each query may find; null for all. left: the points that any query may find; null for all.
// narrow: returned values are float32.
struct SparseRequest {
  std::int64_t k = 1;
  const double* limits = nullptr;
  bool own = false;
  bool later = false;
  bool counted = false;
  bool narrow = true;
  const AllowedPairs* allowed = nullptr;
  const bool* left = nullptr;
};

class SparseBlock {
 public:
  // For queries [begin, end) of the rows. `ranks` has the rank of each of their entries, or -1 for columns that no
  // point has. `limits` belong to the same queries.
  SparseBlock(Isa isa, const SparsePoints& points, const SparseRows& queries, const std::int32_t* ranks,
              std::int64_t begin, std::int64_t end, const SparseRequest& request);
  SparseBlock(const SparseBlock&) = delete;
  SparseBlock& operator=(const SparseBlock&) = delete;

  // Compares with one block of points. Blocks come in ascending order, each once.
  void scan(std::int64_t block);
  // Computes the exact values of the candidates of queries [begin, end) of this block, after all blocks are scanned.
  void refine(std::int64_t begin, std::int64_t end);

  std::int64_t count() const { return static_cast<std::int64_t>(queries_.size()); }
  // The number of points that a query has found.
  std::int64_t found(std::int64_t query) const { return found_[static_cast<std::size_t>(query)]; }
  // The number of exact values that have been computed.
  std::int64_t refined() const { return refined_; }
  // Writes the answers of all queries one after another, each nearest first, and empties them.
  template <class Value>
  void write(Value* distances, std::int32_t* indices);

 private:
  struct Candidate {
    float low, high;
    std::int32_t id;
  };
  struct Query {
    std::int64_t begin = 0, end = 0;         // the range of the query's entries
    std::int64_t split[kSparseBounds] = {};  // the first entry from each bound on
    float rest[kSparseBounds] = {};          // upper bounds of the norm of the entries before it
    double work[kSparseBounds] = {};         // the cost of these entries, in additions per point
    double square = 0, scale = 1;
    float half_scale = 0, half_scale_above = 0, error = 0, slack = 0, most = 0;
    bool screened = true;
    bool zeros_tie = false;  // whether a sum of 0 means the value of rows without a common column
    std::int64_t zeros = 0;  // number of points without a common column that were found
    std::size_t room = 0;
    std::vector<Candidate> candidates;
    AllowedRow allowed;
  };

  void prepare(std::int64_t row, Query& query);
  float key_within(const Query& query, double limit) const;
  void find_lists(const Query& query, std::int64_t block);
  void add_frequent(std::int64_t first, std::int64_t last);
  void add_rare(std::int64_t entry, std::int64_t begin, std::int64_t end);
  bool complete(std::int64_t at, std::int64_t level, std::int64_t begin, std::int64_t length);
  void keep(std::int64_t at, std::int64_t begin, std::int64_t point, float sum);
  void condense(std::int64_t at);
  void settle(std::int64_t at);
  double value_of(std::int64_t at, std::int64_t point) const;
  SparseBounds bounds_of(const Query& query, std::int64_t begin) const;
  float threshold_of(const Query& query) const;

  const SparseSweeps& sweeps_;
  const SparsePoints& points_;
  SparseRows rows_;
  const std::int32_t* ranks_;
  std::int64_t first_;
  SparseRequest request_;
  std::vector<Query> queries_;
  std::vector<std::int32_t> entry_ranks_;
  std::vector<float> entry_weights_;
  std::vector<std::int64_t> cursors_, lasts_;  // where each rare entry's list continues and ends
  std::int64_t lists_first_ = 0;               // the entry of the first list
  std::vector<std::pair<const SparseTerm*, const SparseTerm*>> lists_;  // of the frequent entries of a query
  std::vector<float> sums_;
  std::vector<std::int32_t> survivors_;
  std::vector<float> spread_;  // the weights of a query by rank, 0 for other ranks
  std::vector<const float*> columns_;
  std::vector<std::vector<std::pair<double, std::int32_t>>> answers_;
  std::vector<std::int64_t> found_;
  std::int64_t refined_ = 0;
};

}  // namespace tonari
