// Finds the places of the true entries in a mask with few true entries.
#pragma once

#include <cstdint>

namespace tonari {

// Writes the places of the nonzero bytes, ascending, and returns their number; stops and returns `room` + 1 if there
// are more than `room`.
std::int64_t true_entries(const std::uint8_t* mask, std::int64_t n, std::int64_t* places, std::int64_t room);

}  // namespace tonari
