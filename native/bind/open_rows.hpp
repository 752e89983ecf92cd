// The range of rows that an object has prepared, within which its other functions may read and write.
#pragma once

#include "bind/checks.hpp"

namespace tonari {

// The rows [begin, end) that open() has prepared; none before the first call.
struct OpenRows {
  std::int64_t begin = 0, end = 0;

  std::int64_t count() const { return end - begin; }
  void check() const { require(begin < end, "no rows are open; call open() first"); }
  // Opens rows with `open(begin, end)`; if that throws, no rows are open.
  template <class Open>
  void reopen(const char* items, std::int64_t first, std::int64_t last, std::int64_t low, std::int64_t high,
              Open&& open) {
    check_range(items, first, last, low, high);
    require(first < last, "no rows to open; expected begin < end");
    *this = {};
    open(first, last);
    *this = {first, last};
  }
};

}  // namespace tonari
