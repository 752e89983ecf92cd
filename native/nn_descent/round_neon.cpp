// Rounds of NN-Descent for NEON, in registers of four float32; nn_descent/round_tile.hpp has the rows of a round.
#include "nn_descent/round_tile.hpp"
#include "nn_descent/rounds.hpp"

namespace tonari {

std::int64_t descent_round_neon(const DescentTask& task, std::int64_t begin, std::int64_t end) {
  return RoundRows(task, exact_values_neon).run(begin, end);
}

}  // namespace tonari
