// The scan of bits without instructions for it: sums within the bits of a word (Warren, Hacker's Delight, 5-1), which
// baseline registers hold for four points at a time.
#include <algorithm>

#include "bits/scan_tile.hpp"

namespace tonari {
namespace {

struct Generic {
  static constexpr int kQueries = 1;
  static constexpr std::int64_t kWords = 31;  // a byte of a sum holds at most 255, and a word adds 8 to it

  template <bool SHARED, int Q>
  static void count(const std::uint32_t* x, const std::uint32_t* q, std::int64_t width,
                    std::uint32_t (&counted)[Q][kBitLanes]) {
    static_assert(Q == 1);
    std::uint32_t totals[kBitLanes] = {};
    for (std::int64_t begin = 0; begin < width; begin += kWords) {
      std::uint32_t sums[kBitLanes] = {};
      const std::int64_t end = std::min(width, begin + kWords);
      for (std::int64_t w = begin; w < end; ++w) {
        const std::uint32_t word = q[w];
        for (int lane = 0; lane < kBitLanes; ++lane) {
          const std::uint32_t other = x[w * kBitLanes + lane];
          std::uint32_t bits = SHARED ? other & word : other ^ word;
          bits -= bits >> 1 & 0x55555555u;
          bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
          sums[lane] += (bits + (bits >> 4)) & 0x0f0f0f0fu;
        }
      }
      for (int lane = 0; lane < kBitLanes; ++lane) {
        const std::uint32_t pairs = (sums[lane] & 0x00ff00ffu) + (sums[lane] >> 8 & 0x00ff00ffu);
        totals[lane] += (pairs & 0xffffu) + (pairs >> 16);
      }
    }
    std::copy(totals, totals + kBitLanes, counted[0]);
  }

  static std::uint32_t below(const std::uint32_t* counted, std::int32_t limit) {
    std::uint32_t lanes = 0;
    for (int lane = 0; lane < kBitLanes; ++lane) {
      lanes |= static_cast<std::uint32_t>(static_cast<std::int32_t>(counted[lane]) < limit) << lane;
    }
    return lanes;
  }

  static std::uint32_t near(const std::uint32_t* counted, const std::int32_t* counts, std::int32_t query_count,
                            float scale) {
    std::uint32_t lanes = 0;
    for (int lane = 0; lane < kBitLanes; ++lane) {
      const auto shared = static_cast<float>(static_cast<std::int32_t>(counted[lane]));
      lanes |= static_cast<std::uint32_t>(shared >= scale * static_cast<float>(query_count + counts[lane])) << lane;
    }
    return lanes;
  }
};

}  // namespace

void bit_scan_generic(const BitTask& task) { scan_bits<Generic>(task); }

}  // namespace tonari
