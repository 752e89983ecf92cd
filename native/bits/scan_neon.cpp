// The scan of bits for NEON, which counts the bits of every byte in one instruction; bytes are summed for 31 words
// before they are widened.
#include "bits/scan_tile.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

using Counts = Vec<std::int32_t, kBitLanes>;
using Scores = Vec<float, kBitLanes>;

struct NeonScan {
  static constexpr int kQueries = 2;
  static constexpr std::int64_t kWords = 31;  // a byte of a sum holds at most 255, and a word adds 8 to it
  static constexpr int kParts = kBitLanes / 4;

  template <bool SHARED, int Q>
  static void count(const std::uint32_t* x, const std::uint32_t* q, std::int64_t width,
                    std::uint32_t (&counted)[Q][kBitLanes]) {
    uint32x4_t totals[Q][kParts];
    for (int j = 0; j < Q; ++j) {
      for (int part = 0; part < kParts; ++part) totals[j][part] = vdupq_n_u32(0);
    }
    for (std::int64_t begin = 0; begin < width; begin += kWords) {
      const std::int64_t end = begin + kWords < width ? begin + kWords : width;
      uint8x16_t sums[Q][kParts];
      for (int j = 0; j < Q; ++j) {
        for (int part = 0; part < kParts; ++part) sums[j][part] = vdupq_n_u8(0);
      }
      for (std::int64_t w = begin; w < end; ++w) {
        for (int part = 0; part < kParts; ++part) {
          const uint32x4_t here = vld1q_u32(x + w * kBitLanes + 4 * part);
          for (int j = 0; j < Q; ++j) {
            const uint32x4_t word = vdupq_n_u32(q[j * width + w]);
            const uint32x4_t bits = SHARED ? vandq_u32(here, word) : veorq_u32(here, word);
            sums[j][part] = vaddq_u8(sums[j][part], vcntq_u8(vreinterpretq_u8_u32(bits)));
          }
        }
      }
      for (int j = 0; j < Q; ++j) {
        for (int part = 0; part < kParts; ++part) {
          totals[j][part] = vpadalq_u16(totals[j][part], vpaddlq_u8(sums[j][part]));
        }
      }
    }
    for (int j = 0; j < Q; ++j) {
      for (int part = 0; part < kParts; ++part) vst1q_u32(counted[j] + 4 * part, totals[j][part]);
    }
  }

  static Counts loaded(const std::uint32_t* counted) {
    return Counts::load(reinterpret_cast<const std::int32_t*>(counted));
  }

  static std::uint32_t below(const std::uint32_t* counted, std::int32_t limit) {
    return bits(loaded(counted) < Counts(limit));
  }

  static std::uint32_t near(const std::uint32_t* counted, const std::int32_t* counts, std::int32_t query_count,
                            float scale) {
    const auto both = convert<float>(Counts(query_count) + Counts::load(counts));
    return bits(convert<float>(loaded(counted)) >= Scores(scale) * both);
  }
};

}  // namespace

void bit_scan_neon(const BitTask& task) { scan_bits<NeonScan>(task); }

}  // namespace tonari
