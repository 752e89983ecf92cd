// A float that is not below a number.
#pragma once

#include <cmath>
#include <limits>

namespace tonari {

// The number, rounded up to a float; infinity if it is too large.
inline float at_least(double number) {
  const auto near = static_cast<float>(number);
  return static_cast<double>(near) >= number ? near : std::nextafter(near, std::numeric_limits<float>::infinity());
}

}  // namespace tonari
