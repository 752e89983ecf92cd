// The search through a tree for AVX2. A node has 16 children, more than a register has lanes: two or four registers
// side by side (kdtree/lanes.hpp) act as one. kdtree/search_tile.hpp has the walk.
#include "kdtree/lanes.hpp"
#include "kdtree/search_tile.hpp"
#include "kdtree/searches.hpp"
#include "simd/avx2.hpp"

namespace tonari {
namespace {

struct EightSingles : Avx2 {
  using Value = float;
  using Key = std::int32_t;
  using K = __m256i;
  static constexpr Key kDone = 0x7fffffff;
  static K keys(F bounds, F lowest) {
    const F absent = _mm256_cmp_ps(lowest, set1(std::numeric_limits<float>::infinity()), _CMP_EQ_OQ);
    return _mm256_castps_si256(_mm256_blendv_ps(bounds, _mm256_castsi256_ps(_mm256_set1_epi32(kDone)), absent));
  }
  static K load_keys(const Key* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store_keys(Key* p, K a) { _mm256_store_si256(reinterpret_cast<__m256i*>(p), a); }
  static K min_keys(K a, K b) { return _mm256_min_epi32(a, b); }
  static Key smallest(K a) {
    __m128i b = _mm_min_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    b = _mm_min_epi32(b, _mm_shuffle_epi32(b, 0x4e));
    b = _mm_min_epi32(b, _mm_shuffle_epi32(b, 0xb1));
    return _mm_cvtsi128_si32(b);
  }
  static std::uint32_t equal(K a, Key key) {
    const __m256i same = _mm256_cmpeq_epi32(a, _mm256_set1_epi32(key));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(same)));
  }
  static K done(K a, int lane) {  // a lane of another register changes nothing
    const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_blendv_epi8(a, _mm256_set1_epi32(kDone), _mm256_cmpeq_epi32(numbers, _mm256_set1_epi32(lane)));
  }
};

struct FourDoubles {
  static constexpr int lanes = 4;
  using Value = double;
  using F = __m256d;
  using Key = std::int64_t;
  using K = __m256i;
  static constexpr Key kDone = 0x7fffffffffffffff;
  static F load(const double* p) { return _mm256_loadu_pd(p); }
  static F set1(double x) { return _mm256_set1_pd(x); }
  static F add(F a, F b) { return _mm256_add_pd(a, b); }
  static F sub(F a, F b) { return _mm256_sub_pd(a, b); }
  static F mul(F a, F b) { return _mm256_mul_pd(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_pd(a, b, c); }
  static F min(F a, F b) { return _mm256_min_pd(a, b); }
  static F max(F a, F b) { return _mm256_max_pd(a, b); }
  static F abs(F a) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a); }
  static std::uint32_t less_equal(F a, F b) {
    return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LE_OQ)));
  }
  static K keys(F bounds, F lowest) {
    const F absent = _mm256_cmp_pd(lowest, set1(std::numeric_limits<double>::infinity()), _CMP_EQ_OQ);
    return _mm256_castpd_si256(_mm256_blendv_pd(bounds, _mm256_castsi256_pd(_mm256_set1_epi64x(kDone)), absent));
  }
  static K load_keys(const Key* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store_keys(Key* p, K a) { _mm256_store_si256(reinterpret_cast<__m256i*>(p), a); }
  static K min_keys(K a, K b) { return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b)); }
  static Key smallest(K a) {
    alignas(32) Key keys[4];
    store_keys(keys, min_keys(a, _mm256_permute4x64_epi64(a, 0x4e)));
    return keys[0] < keys[1] ? keys[0] : keys[1];
  }
  static std::uint32_t equal(K a, Key key) {
    const __m256i same = _mm256_cmpeq_epi64(a, _mm256_set1_epi64x(key));
    return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(same)));
  }
  static K done(K a, int lane) {
    const __m256i numbers = _mm256_setr_epi64x(0, 1, 2, 3);
    return _mm256_blendv_epi8(a, _mm256_set1_epi64x(kDone), _mm256_cmpeq_epi64(numbers, _mm256_set1_epi64x(lane)));
  }
};

struct Singles : Twice<EightSingles> {
  static constexpr int most_runs = 4;
};
struct Doubles : Twice<Twice<FourDoubles>> {
  static constexpr int most_runs = 2;
};

template <class T>
using Lanes = std::conditional_t<std::is_same_v<T, float>, Singles, Doubles>;

}  // namespace

std::int64_t tree_search_avx2(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                              TreeVisits& visits) {
  return tree_search_tile<Lanes, 4>(task, begin, end, budget, visits);
}

}  // namespace tonari
