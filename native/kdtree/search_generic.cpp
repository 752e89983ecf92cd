// The search through a tree in portable C++, which any compiler maps to baseline vector registers.
#include "kdtree/search_tile.hpp"
#include "kdtree/searches.hpp"

namespace tonari {
namespace {

template <class T>
struct Lanes {
  static constexpr int lanes = kTreeWidth, most_runs = 2;
  using Value = T;
  using Key = std::conditional_t<std::is_same_v<T, float>, std::int32_t, std::int64_t>;
  struct F {
    T v[lanes];
  };
  struct K {
    Key v[lanes];
  };
  static constexpr Key kDone = std::numeric_limits<Key>::max();
  template <class Function>
  static F each(Function&& f) {
    F out;
    for (int i = 0; i < lanes; ++i) out.v[i] = f(i);
    return out;
  }
  static F load(const T* p) {
    return each([&](int i) { return p[i]; });
  }
  static F set1(T x) {
    return each([&](int) { return x; });
  }
  static F add(F a, F b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F sub(F a, F b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F mul(F a, F b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F fma(F a, F b, F c) { return add(mul(a, b), c); }
  static F min(F a, F b) {
    return each([&](int i) { return b.v[i] < a.v[i] ? b.v[i] : a.v[i]; });
  }
  static F max(F a, F b) {
    return each([&](int i) { return b.v[i] > a.v[i] ? b.v[i] : a.v[i]; });
  }
  static F abs(F a) {
    return each([&](int i) { return std::fabs(a.v[i]); });
  }
  static std::uint32_t less_equal(F a, F b) {
    std::uint32_t bits = 0;
    for (int i = 0; i < lanes; ++i) bits |= static_cast<std::uint32_t>(a.v[i] <= b.v[i]) << i;
    return bits;
  }
  static K keys(F bounds, F lowest) {
    K out;
    for (int i = 0; i < lanes; ++i) {
      out.v[i] = lowest.v[i] == std::numeric_limits<T>::infinity() ? kDone : std::bit_cast<Key>(bounds.v[i]);
    }
    return out;
  }
  static K load_keys(const Key* p) {
    K out;
    std::memcpy(out.v, p, sizeof out.v);
    return out;
  }
  static void store_keys(Key* p, K a) { std::memcpy(p, a.v, sizeof a.v); }
  static Key smallest(K a) {
    Key least = a.v[0];
    for (int i = 1; i < lanes; ++i) least = a.v[i] < least ? a.v[i] : least;
    return least;
  }
  static std::uint32_t equal(K a, Key key) {
    std::uint32_t bits = 0;
    for (int i = 0; i < lanes; ++i) bits |= static_cast<std::uint32_t>(a.v[i] == key) << i;
    return bits;
  }
  static K done(K a, int lane) {
    a.v[lane] = kDone;
    return a;
  }
};

}  // namespace

std::int64_t tree_search_generic(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t budget,
                                 TreeVisits& visits) {
  return tree_search_tile<Lanes, 2>(task, begin, end, budget, visits);
}

}  // namespace tonari
