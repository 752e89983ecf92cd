#include "sparse/sweeps_tile.hpp"

namespace tonari {

const SparseSweeps sparse_sweeps_avx2 = {add_columns, collect};

}  // namespace tonari
