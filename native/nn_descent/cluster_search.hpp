// Blocks of rows that lie in one cluster meet the members of all clusters near them.
//
//   seekers   rows in the order of their clusters, in small pieces: a block each
//   members   in pieces of packed memory, one or several to a cluster: the same rows, or others
//
// A block meets the clusters that its rows name among their nearest (`near`); those come first that most of them name,
// and name as nearer. With two sides, only rows of different sides meet.
#pragma once

#include <vector>

#include "nn_descent/score_block.hpp"

namespace tonari {

// Rows in pieces, none of which lies in two clusters or on two sides.
struct Pieces {
  const std::int32_t* order = nullptr;     // rows
  const std::int64_t* begins = nullptr;    // where pieces begin in it, and its end
  const std::int64_t* clusters = nullptr;  // of each piece
  const std::int64_t* sides = nullptr;     // of each piece, 0 or 1
  const std::int64_t* firsts = nullptr;    // the first piece of each cluster, and the end
};

struct ClusterTask {
  const Kernel* kernel = nullptr;
  const Form* form = nullptr;
  RowsView rows;  // of the seekers
  Pieces seekers, members;
  std::vector<const PackedPoints*> packed;  // pieces of the members
  std::int64_t clusters = 0;
  const std::int32_t* near = nullptr;  // [row][named]: clusters, the nearest first
  std::int64_t named = 0;
  const std::int32_t* places = nullptr;  // of each row among the members, where the rows are the members; else null
  std::int64_t probes = 0;               // clusters that a block meets, at most
  std::int64_t most = 0;                 // members that it meets, at most, but for a last piece
  bool across = false;                   // only rows of different sides meet
  std::int64_t there[2] = {};            // members on each side
  std::int64_t size = 0;                 // entries of a row
  std::int32_t mark = 0;                 // put on each of them
  std::int32_t* entries = nullptr;       // [row][size], left as they are where nobody is there
};

// Fills the entries of the rows in blocks [begin, end): members, the nearest first, never the row itself.
void search_clusters(const ClusterTask& task, std::int64_t begin, std::int64_t end);

}  // namespace tonari
