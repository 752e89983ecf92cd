// The scan of bits for AVX2: the bits of each half byte are looked up in a register (Mula, Kurz, Lemire, "Faster
// Population Counts Using AVX2 Instructions", 2018), and bytes are summed for 31 words before they are widened.
#include <immintrin.h>

#include "bits/scan_tile.hpp"

namespace tonari {
namespace {

struct Avx2 {
  static constexpr int kQueries = 2;
  static constexpr std::int64_t kWords = 31;  // a byte of a sum holds at most 255, and a word adds 8 to it

  static __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

  template <bool SHARED, int Q>
  static void count(const std::uint32_t* x, const std::uint32_t* q, std::int64_t width,
                    std::uint32_t (&counted)[Q][kBitLanes]) {
    const __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m256i half = _mm256_set1_epi8(15), one = _mm256_set1_epi8(1), wide_one = _mm256_set1_epi16(1);
    __m256i totals[Q][2];
    for (int j = 0; j < Q; ++j) totals[j][0] = totals[j][1] = _mm256_setzero_si256();
    for (std::int64_t begin = 0; begin < width; begin += kWords) {
      const std::int64_t end = begin + kWords < width ? begin + kWords : width;
      __m256i sums[Q][2];
      for (int j = 0; j < Q; ++j) sums[j][0] = sums[j][1] = _mm256_setzero_si256();
      for (std::int64_t w = begin; w < end; ++w) {
        const __m256i here[2] = {load(x + w * kBitLanes), load(x + w * kBitLanes + 8)};
        for (int j = 0; j < Q; ++j) {
          const __m256i word = _mm256_set1_epi32(static_cast<int>(q[j * width + w]));
          for (int part = 0; part < 2; ++part) {
            const __m256i bits = SHARED ? _mm256_and_si256(here[part], word) : _mm256_xor_si256(here[part], word);
            const __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(bits, half));
            const __m256i high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(bits, 4), half));
            sums[j][part] = _mm256_add_epi8(sums[j][part], _mm256_add_epi8(low, high));
          }
        }
      }
      for (int j = 0; j < Q; ++j) {
        for (int part = 0; part < 2; ++part) {
          const __m256i wide = _mm256_madd_epi16(_mm256_maddubs_epi16(sums[j][part], one), wide_one);
          totals[j][part] = _mm256_add_epi32(totals[j][part], wide);
        }
      }
    }
    for (int j = 0; j < Q; ++j) {
      for (int part = 0; part < 2; ++part) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(counted[j] + 8 * part), totals[j][part]);
      }
    }
  }

  static std::uint32_t signs(__m256 low, __m256 high) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(low) | _mm256_movemask_ps(high) << 8);
  }

  static std::uint32_t below(const std::uint32_t* counted, std::int32_t limit) {
    const __m256i most = _mm256_set1_epi32(limit);
    return signs(_mm256_castsi256_ps(_mm256_cmpgt_epi32(most, load(counted))),
                 _mm256_castsi256_ps(_mm256_cmpgt_epi32(most, load(counted + 8))));
  }

  static __m256 near_of(const std::uint32_t* counted, const std::int32_t* counts, __m256i query_count, __m256 scale) {
    const __m256 both = _mm256_cvtepi32_ps(_mm256_add_epi32(query_count, load(counts)));
    return _mm256_cmp_ps(_mm256_cvtepi32_ps(load(counted)), _mm256_mul_ps(scale, both), _CMP_GE_OQ);
  }

  static std::uint32_t near(const std::uint32_t* counted, const std::int32_t* counts, std::int32_t query_count,
                            float scale) {
    const __m256i own = _mm256_set1_epi32(query_count);
    const __m256 times = _mm256_set1_ps(scale);
    return signs(near_of(counted, counts, own, times), near_of(counted + 8, counts + 8, own, times));
  }
};

}  // namespace

void bit_scan_avx2(const BitTask& task) { scan_bits<Avx2>(task); }

}  // namespace tonari
