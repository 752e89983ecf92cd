// The search through a tree for AVX-512: one register holds a float32 of each of a node's 16 children, two side by side
// hold a float64 (kdtree/lanes.hpp). kdtree/search_tile.hpp has the walk.
#include "kdtree/lanes.hpp"
#include "kdtree/search_tile.hpp"
#include "kdtree/searches.hpp"
#include "simd/avx512.hpp"

namespace tonari {
namespace {

struct Singles : Avx512 {
  static constexpr int most_runs = 4;
  using Value = float;
  using Key = std::int32_t;
  using K = __m512i;
  static constexpr Key kDone = 0x7fffffff;
  static K keys(F bounds, F lowest) {
    const __mmask16 absent = _mm512_cmp_ps_mask(lowest, set1(std::numeric_limits<float>::infinity()), _CMP_EQ_OQ);
    return _mm512_mask_mov_epi32(_mm512_castps_si512(bounds), absent, _mm512_set1_epi32(kDone));
  }
  static K load_keys(const Key* p) { return _mm512_load_si512(p); }
  static void store_keys(Key* p, K a) { _mm512_store_si512(p, a); }
  static Key smallest(K a) { return _mm512_reduce_min_epi32(a); }
  static std::uint32_t equal(K a, Key key) { return _mm512_cmpeq_epi32_mask(a, _mm512_set1_epi32(key)); }
  static K done(K a, int lane) {
    return _mm512_mask_mov_epi32(a, static_cast<__mmask16>(1u << lane), _mm512_set1_epi32(kDone));
  }
};

struct EightDoubles {
  static constexpr int lanes = 8;
  using Value = double;
  using F = __m512d;
  using Key = std::int64_t;
  using K = __m512i;
  static constexpr Key kDone = 0x7fffffffffffffff;
  static F load(const double* p) { return _mm512_loadu_pd(p); }
  static F set1(double x) { return _mm512_set1_pd(x); }
  static F add(F a, F b) { return _mm512_add_pd(a, b); }
  static F sub(F a, F b) { return _mm512_sub_pd(a, b); }
  static F mul(F a, F b) { return _mm512_mul_pd(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_pd(a, b, c); }
  static F min(F a, F b) { return _mm512_min_pd(a, b); }
  static F max(F a, F b) { return _mm512_max_pd(a, b); }
  static F abs(F a) { return _mm512_abs_pd(a); }
  static std::uint32_t less_equal(F a, F b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
  static K keys(F bounds, F lowest) {
    const __mmask8 absent = _mm512_cmp_pd_mask(lowest, set1(std::numeric_limits<double>::infinity()), _CMP_EQ_OQ);
    return _mm512_mask_mov_epi64(_mm512_castpd_si512(bounds), absent, _mm512_set1_epi64(kDone));
  }
  static K load_keys(const Key* p) { return _mm512_load_si512(p); }
  static void store_keys(Key* p, K a) { _mm512_store_si512(p, a); }
  static K min_keys(K a, K b) { return _mm512_min_epi64(a, b); }
  static Key smallest(K a) { return _mm512_reduce_min_epi64(a); }
  static std::uint32_t equal(K a, Key key) { return _mm512_cmpeq_epi64_mask(a, _mm512_set1_epi64(key)); }
  static K done(K a, int lane) {  // a lane of another register changes nothing
    const auto mask = static_cast<__mmask8>(static_cast<unsigned>(lane) < 8 ? 1u << lane : 0u);
    return _mm512_mask_mov_epi64(a, mask, _mm512_set1_epi64(kDone));
  }
};

struct Doubles : Twice<EightDoubles> {
  static constexpr int most_runs = 4;
};

template <class T>
using Lanes = std::conditional_t<std::is_same_v<T, float>, Singles, Doubles>;

}  // namespace

std::int64_t tree_search_avx512(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                                TreeVisits& visits) {
  return tree_search_tile<Lanes, 8>(task, begin, end, budget, visits);
}

}  // namespace tonari
