#include "bits/listed_tile.hpp"

namespace tonari {

void bit_pairs_avx2(const std::uint8_t* query, const std::uint8_t* points, std::int64_t bytes, const std::int64_t* ids,
                    std::int64_t count, std::int64_t* differing, std::int64_t* either) {
  count_bit_pairs(query, points, bytes, ids, count, differing, either);
}

}  // namespace tonari
