// The measured ceiling: how fast one core repeats the instruction that a kernel lives on.
#pragma once

#include <chrono>

namespace tonari {
namespace {

// Repeats `burst` (which returns the operations it did) for about `seconds`.
template <class Burst>
double measured_rate(double seconds, Burst&& burst) {
  using clock = std::chrono::steady_clock;
  double operations = 0, elapsed = 0;
  const auto start = clock::now();
  while (elapsed < seconds) {
    operations += burst();
    elapsed = std::chrono::duration<double>(clock::now() - start).count();
  }
  return operations / elapsed;
}

}  // namespace
}  // namespace tonari
