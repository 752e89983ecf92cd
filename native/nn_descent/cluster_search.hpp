// Compares blocks of rows from the same cluster with the members of all clusters near them.
//
//   seekers   rows in the order of their clusters, in small pieces, each of which is a block
//   members   the same rows or others, in pieces of packed memory, one or several per cluster
//
// A block is compared with ("meets") the clusters that its rows name among their nearest (`near`): first those that the
// most rows name, and that they name as nearer, then those nearest to its own cluster (`ranked`). With two sides, only
// rows of different sides meet.
#pragma once

#include <vector>

#include "exact/score_block.hpp"

namespace tonari {

// Rows in pieces. All rows of a piece are in the same cluster and on the same side.
struct Pieces {
  const std::int32_t* order = nullptr;     // row numbers in the order of pieces
  const std::int64_t* begins = nullptr;    // where each piece begins in `order`; then the end of `order`
  const std::int64_t* clusters = nullptr;  // the cluster of each piece
  const std::int64_t* sides = nullptr;     // the side of each piece, 0 or 1
  const std::int64_t* firsts = nullptr;    // the first piece of each cluster, and the end
};

struct ClusterTask {
  const Kernel* kernel = nullptr;
  const Form* form = nullptr;
  RowsView rows;  // the rows of the seekers
  Pieces seekers, members;
  std::vector<const PackedPoints*> packed;  // the packed pieces of members
  std::int64_t clusters = 0;
  const std::int32_t* near = nullptr;  // [row][named]: clusters, the nearest first
  std::int64_t named = 0;
  const std::int32_t* ranked = nullptr;  // [cluster][ranks]: the clusters nearest to it, the nearest first
  std::int64_t ranks = 0;
  const std::int32_t* places = nullptr;  // each row's place among the members if the rows are the members, else null
  std::int64_t probes = 0;               // the most clusters with which a block is compared
  std::int64_t most = 0;            // the most members with which a block is compared; the last piece may exceed it
  bool across = false;              // whether only rows of different sides meet
  std::int64_t there[2] = {};       // number of members on each side
  std::int64_t size = 0;            // number of entries of a row
  std::int32_t mark = 0;            // set in each entry
  std::int32_t* entries = nullptr;  // [row][size]; entries without a member are not changed
};

// Fills the entries of the rows in blocks [begin, end) with members, the nearest first, never the row itself.
void search_clusters(const ClusterTask& task, std::int64_t begin, std::int64_t end);

}  // namespace tonari
