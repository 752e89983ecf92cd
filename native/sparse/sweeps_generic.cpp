#include "sparse/sweeps_tile.hpp"

namespace tonari {

const SparseSweeps sparse_sweeps_generic = {add_columns, collect};

}  // namespace tonari
