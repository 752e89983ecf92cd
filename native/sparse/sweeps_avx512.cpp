#include "sparse/sweeps_tile.hpp"

namespace tonari {

const SparseSweeps sparse_sweeps_avx512 = {add_columns, collect};

}  // namespace tonari
