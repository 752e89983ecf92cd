// Every operation of native/simd/vec.hpp against a loop over its lanes, for the instruction set that this is compiled
// for (test_simd.py). Prints what differs.
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "simd/vec.hpp"

using namespace tonari;

namespace {

int failures = 0;

template <class T, int N>
void expect(const char* operation, const std::array<T, N>& found, const std::array<T, N>& wanted) {
  if (std::memcmp(found.data(), wanted.data(), sizeof found) == 0) return;
  std::printf("%s of %d lanes of %d bytes (%s)\n", operation, N, static_cast<int>(sizeof(T)),
              std::is_floating_point_v<T> ? "floating" : "whole");
  ++failures;
}

template <class T, int N>
std::array<T, N> stored(Vec<T, N> v) {
  std::array<T, N> out;
  v.store(out.data());
  return out;
}

template <class T, int N, class F>
std::array<T, N> lanewise(F f) {
  std::array<T, N> out;
  for (int i = 0; i < N; ++i) out[static_cast<std::size_t>(i)] = f(static_cast<std::size_t>(i));
  return out;
}

std::mt19937_64 draws(20260101);

template <class T>
T draw() {
  using Limits = std::numeric_limits<T>;
  const auto bits = draws();
  if constexpr (std::is_floating_point_v<T>) {
    const T special[] = {
        T{0}, -T{0}, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(), Limits::max()};
    if (bits % 4 == 0) return special[(bits >> 8) % 7];
    return static_cast<T>(static_cast<double>(static_cast<std::int64_t>(draws())) * 0x1p-60);
  } else {
    const T special[] = {Limits::min(), Limits::max(), T{0}, T{-1}};
    if (bits % 4 == 0) return special[(bits >> 8) % 4];
    return static_cast<T>(bits % 3 == 0 ? draws() % 8 : draws());
  }
}

template <class T, int N>
struct Drawn {
  std::array<T, N> a = lanewise<T, N>([](auto) { return draw<T>(); });
  std::array<T, N> b = lanewise<T, N>([this](auto i) { return draws() % 4 == 0 ? a[i] : draw<T>(); });
  std::array<T, N> c = lanewise<T, N>([](auto) { return draw<T>(); });
  Vec<T, N> x = Vec<T, N>::load(a.data()), y = Vec<T, N>::load(b.data()), z = Vec<T, N>::load(c.data());
};

template <class T, int N, class Truth, class F>
void expect_truth(const char* operation, Truth found, F wanted) {
  std::uint32_t expected = 0;
  for (int i = 0; i < N; ++i) expected |= static_cast<std::uint32_t>(wanted(static_cast<std::size_t>(i))) << i;
  expect<std::uint32_t, 1>(operation, {bits(found)}, {expected});
  expect<int, 1>("any", {any(found)}, {expected != 0});
}

// Of any number of registers.
template <class T, int N>
void check_lanes() {
  using V = Vec<T, N>;
  const Drawn<T, N> d;
  const auto &a = d.a, &b = d.b, &c = d.c;
  const auto &x = d.x, &y = d.y, &z = d.z;
  expect<T, N>("load and store", stored(x), a);
  expect<T, N>("broadcast", stored(V(a[0])), lanewise<T, N>([&](auto) { return a[0]; }));
  expect<T, N>("min", stored(min(x, y)), lanewise<T, N>([&](auto i) { return a[i] < b[i] ? a[i] : b[i]; }));
  expect<T, N>("max", stored(max(x, y)), lanewise<T, N>([&](auto i) { return a[i] > b[i] ? a[i] : b[i]; }));
  expect_truth<T, N>("<", x < y, [&](auto i) { return a[i] < b[i]; });
  expect_truth<T, N>("<=", x <= y, [&](auto i) { return a[i] <= b[i]; });
  expect_truth<T, N>(">", x > y, [&](auto i) { return a[i] > b[i]; });
  expect_truth<T, N>(">=", x >= y, [&](auto i) { return a[i] >= b[i]; });
  expect_truth<T, N>("==", x == y, [&](auto i) { return a[i] == b[i]; });
  expect_truth<T, N>("&", (x < y) & (y < z), [&](auto i) { return a[i] < b[i] && b[i] < c[i]; });
  expect_truth<T, N>("|", (x < y) | (y < z), [&](auto i) { return a[i] < b[i] || b[i] < c[i]; });
  const auto some = static_cast<std::uint32_t>(draws()) & static_cast<std::uint32_t>((std::uint64_t{1} << N) - 1);
  expect_truth<T, N>("Mask::of", V::Truth::of(some), [&](auto i) { return (some >> i & 1) != 0; });
  expect<T, N>("choose", stored(choose(x < y, y, z)),
               lanewise<T, N>([&](auto i) { return a[i] < b[i] ? b[i] : c[i]; }));
  auto changed = x;
  changed.set(N - 1, b[0]);
  expect<T, N>("set", stored(changed), lanewise<T, N>([&](auto i) { return i == N - 1 ? b[0] : a[i]; }));
  expect<T, N>("[]", lanewise<T, N>([&](auto i) { return x[static_cast<std::int64_t>(i)]; }), a);

  if constexpr (std::is_floating_point_v<T>) {
    expect<T, N>("*", stored(V(T{3}) * abs(y)), lanewise<T, N>([&](auto i) { return T{3} * std::fabs(b[i]); }));
    // Numbers only, since the sign of a new NaN is nobody's.
    const auto number = [](V v) { return choose(abs(v) <= T{9}, v, T{2}); };
    const V p = number(x), q = number(y), r = number(z);
    const auto l = stored(p), m = stored(q), n = stored(r);
    expect<T, N>("+", stored(p + q), lanewise<T, N>([&](auto i) { return l[i] + m[i]; }));
    expect<T, N>("-", stored(p - q), lanewise<T, N>([&](auto i) { return l[i] - m[i]; }));
    expect<T, N>("/", stored(p / V(T{3})), lanewise<T, N>([&](auto i) { return l[i] / T{3}; }));
    expect<T, N>("abs", stored(abs(x)), lanewise<T, N>([&](auto i) { return std::fabs(a[i]); }));
    expect<T, N>("sqrt", stored(sqrt(abs(p))), lanewise<T, N>([&](auto i) { return std::sqrt(std::fabs(l[i])); }));
    expect<T, N>("fma", stored(fma(p, q, r)), lanewise<T, N>([&](auto i) {
                   return std::is_same_v<Target, Generic> ? l[i] * m[i] + n[i] : std::fma(l[i], m[i], n[i]);
                 }));
    auto left = l;  // the defined order of sums: halves
    for (std::size_t half = N / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) left[i] += left[i + half];
    }
    expect<T, 1>("fold", {fold(p, [](auto u, auto v) { return u + v; })}, {left[0]});
    using I = Integer<sizeof(T)>;
    expect<I, N>("as", stored(as<I>(x)), lanewise<I, N>([&](auto i) { return std::bit_cast<I>(a[i]); }));
  } else {
    using U = std::make_unsigned_t<T>;
    const auto wrapped = [](auto f) { return [f](auto i) { return static_cast<T>(f(i)); }; };
    const V p = x >> 1, q = y >> 1;  // whose sums are no larger than T holds
    expect<T, N>("+", stored(p + q), lanewise<T, N>([&](auto i) { return (a[i] >> 1) + (b[i] >> 1); }));
    expect<T, N>("-", stored(p - q), lanewise<T, N>([&](auto i) { return (a[i] >> 1) - (b[i] >> 1); }));
    expect<T, N>("&", stored(x & y), lanewise<T, N>([&](auto i) { return a[i] & b[i]; }));
    expect<T, N>("|", stored(x | y), lanewise<T, N>([&](auto i) { return a[i] | b[i]; }));
    expect<T, N>("^", stored(x ^ y), lanewise<T, N>([&](auto i) { return a[i] ^ b[i]; }));
    expect<T, N>("~", stored(~x), lanewise<T, N>([&](auto i) { return ~a[i]; }));
    expect<T, N>("<<", stored(x << 5), lanewise<T, N>(wrapped([&](auto i) { return static_cast<U>(a[i]) << 5; })));
    expect<T, N>(">>", stored(x >> 5), lanewise<T, N>(wrapped([&](auto i) { return a[i] >> 5; })));
    expect_truth<T, N>("less_among", less_among(x == y, y, z), [&](auto i) { return a[i] == b[i] && b[i] < c[i]; });
    expect<T, N>("count", stored(count(V(T{3}), x < y)),
                 lanewise<T, N>(wrapped([&](auto i) { return 3 + (a[i] < b[i]); })));
    T least = a[0];
    for (const T value : a) least = value < least ? value : least;
    expect<T, 1>("fold", {fold(x, [](auto u, auto v) { return min(u, v); })}, {least});
    using F = std::conditional_t<sizeof(T) == 4, float, double>;
    expect<F, N>("convert", stored(convert<F>(x)), lanewise<F, N>([&](auto i) { return static_cast<F>(a[i]); }));
  }
}

// Of one register.
template <class T>
void check_register() {
  constexpr int N = kRegisterLanes<T>;
  using V = Register<T>;
  const Drawn<T, N> d;
  const auto &a = d.a, &b = d.b;
  const auto &x = d.x, &y = d.y;
  expect<T, N>("numbers", stored(V::numbers()), lanewise<T, N>([](auto i) { return static_cast<T>(i); }));
  expect<T, N>("xor_lanes", stored(xor_lanes<N - 1>(x)), lanewise<T, N>([&](auto i) { return a[i ^ (N - 1)]; }));
  expect<T, N>("xor_lanes", stored(xor_lanes<1>(x)), lanewise<T, N>([&](auto i) { return a[i ^ 1]; }));
  expect<T, N>("slide", stored(slide(x, y)), lanewise<T, N>([&](auto i) { return i == 0 ? a[N - 1] : b[i - 1]; }));
  const auto woven = [&](std::size_t i) { return i % 2 == 0 ? a[i / 2] : b[i / 2]; };
  expect<T, N>("interleave", stored(interleave<0>(x, y)), lanewise<T, N>(woven));
  expect<T, N>("interleave", stored(interleave<1>(x, y)), lanewise<T, N>([&](auto i) { return woven(i + N); }));
  for (int n = 0; n <= N; ++n) {
    expect<T, N>("load_first", stored(V::load_first(a.data(), n)),
                 lanewise<T, N>([&](auto i) { return i < static_cast<std::size_t>(n) ? a[i] : T{0}; }));
  }
  if constexpr (!std::is_floating_point_v<T>) {
    const auto some = static_cast<std::uint32_t>(draws()) & static_cast<std::uint32_t>((std::uint64_t{1} << N) - 1);
    std::array<T, N> packed{}, wanted{};
    compress(packed.data(), some, x);
    std::size_t taken = 0;
    for (std::size_t i = 0; i < N; ++i) {
      if (some >> i & 1) wanted[taken++] = a[i];
    }
    for (std::size_t i = taken; i < N; ++i) packed[i] = T{0};
    expect<T, N>("compress", packed, wanted);
  }
}

template <class T, int N, class Stored>
void check_load() {
  std::array<Stored, N> from;
  for (Stored& value : from) {
    if constexpr (std::is_same_v<Stored, Float16>)
      value = Float16{static_cast<std::uint16_t>(draws() % 0x7c00 | (draws() & 0x8000))};
    else if constexpr (std::is_same_v<Stored, Bfloat16>)
      value = Bfloat16{static_cast<std::uint16_t>(draws() % 0x7f80 | (draws() & 0x8000))};
    else if constexpr (std::is_floating_point_v<Stored>)
      value = static_cast<Stored>(static_cast<std::int64_t>(draws())) * Stored{0x1p-60};
    else value = static_cast<Stored>(draws());
  }
  expect<T, N>("load of a stored type", stored(Vec<T, N>::load(from.data())),
               lanewise<T, N>([&](auto i) { return to_value<T>(from[i]); }));
}

// Values that Stored holds after one rounding, which to_value undoes. Multiples of a step meet ties.
template <class Stored>
void check_store(double least, double most, double step = 0) {
  constexpr int n = 16;
  const auto from = lanewise<double, n>([&](auto) {
    const double share = static_cast<double>(draws() >> 11) * 0x1p-53, x = least + (most - least) * share;
    if (step > 0) return std::nearbyint(x / step) * step;
    return sizeof(Stored) == 1 ? std::nearbyint(x) + 0.0 : x;  // no -0
  });
  std::array<Stored, n> to;
  Vec<double, n>::load(from.data()).store(to.data());
  expect<double, n>("store as another type", lanewise<double, n>([&](auto i) { return to_value<double>(to[i]); }),
                    lanewise<double, n>([&](auto i) {
                      if constexpr (sizeof(Stored) == 1) return from[i];
                      const float once = static_cast<float>(from[i]);
                      if constexpr (!std::is_same_v<Stored, Bfloat16>) return static_cast<double>(once);
                      int exponent = 0;  // 8 bits of the fraction remain
                      const double fraction = std::frexp(static_cast<double>(once), &exponent);
                      return std::ldexp(std::nearbyint(fraction * 256), exponent - 8);
                    }));
}

}  // namespace

int main() {
  for (int round = 0; round < 500; ++round) {
    check_lanes<float, kRegisterLanes<float>>(), check_lanes<float, 16>();
    check_lanes<double, kRegisterLanes<double>>(), check_lanes<double, 16>();
    check_lanes<std::int32_t, kRegisterLanes<std::int32_t>>(), check_lanes<std::int32_t, 16>();
    check_lanes<std::int64_t, kRegisterLanes<std::int64_t>>(), check_lanes<std::int64_t, 8>(),
        check_lanes<std::int64_t, 16>();
    check_register<float>(), check_register<double>(), check_register<std::int32_t>(), check_register<std::int64_t>();
    check_load<float, kRegisterLanes<float>, std::uint8_t>(), check_load<float, kRegisterLanes<float>, std::int8_t>();
    check_load<float, kRegisterLanes<float>, Float16>(), check_load<float, kRegisterLanes<float>, Bfloat16>();
    check_load<double, 16, float>(), check_load<double, 16, Bfloat16>(), check_load<double, 16, double>();
    check_load<double, 16, std::uint8_t>(), check_load<double, 16, std::int8_t>(), check_load<double, 16, Float16>();
    check_store<float>(-1e3, 1e3), check_store<Bfloat16>(-1e3, 1e3), check_store<Bfloat16>(256, 258);
    check_store<Bfloat16>(256, 264, 0.5), check_store<Bfloat16>(-264, -256, 0.5);
    check_store<std::int8_t>(-128, 127), check_store<std::uint8_t>(0, 255);
    check_load<std::int32_t, kRegisterLanes<std::int32_t>, std::int16_t>();
    check_load<std::int32_t, kRegisterLanes<std::int32_t>, std::uint8_t>();
    check_load<std::int64_t, kRegisterLanes<std::int64_t>, std::int32_t>();
    if (failures > 0) return 1;
  }
  return 0;
}
