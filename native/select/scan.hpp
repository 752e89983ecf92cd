// Reads a row once for the values at or below a limit: converts them to keys, compares these, and compacts the columns,
// all in registers. The keys of the few columns that are taken are computed again when they are needed.
//
//   64 values -> 64 keys -> 64 bits (the ballot) -> columns of the bits that are set
#pragma once

#include <cstdint>
#include <cstring>

#include "select/keys.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

// A format of stored values; the bits of +inf are 0 for integers.
template <class RawType, class KeyType, KeyType INFINITE, bool LARGEST>
struct Format {
  using Raw = RawType;
  using Key = KeyType;
  static constexpr Key infinite = INFINITE;
  static constexpr bool largest = LARGEST;
};

// Calls work(Format) with the format of the task's values.
template <class Key, class Work>
auto with_format(const SelectTask& task, const Work& work) {
  const auto order = [&]<class Raw, Key INFINITE>() {
    return task.largest ? work(Format<Raw, Key, INFINITE, true>{}) : work(Format<Raw, Key, INFINITE, false>{});
  };
  if constexpr (sizeof(Key) == 8) {
    return order.template operator()<std::int64_t, 0x7ff0000000000000>();
  } else {
    switch (task.type) {
      case ValueType::f16: return order.template operator()<std::int16_t, 0x7c00>();
      case ValueType::bf16: return order.template operator()<std::int16_t, 0x7f80>();
      case ValueType::i32: return order.template operator()<std::int32_t, 0>();
      case ValueType::u8: return order.template operator()<std::uint8_t, 0>();
      default: return order.template operator()<std::int32_t, 0x7f800000>();
    }
  }
}

template <class F>
const typename F::Raw* row_of(const SelectTask& task, std::int64_t row) {
  return static_cast<const typename F::Raw*>(task.values) + row * task.stride;
}

// Keys of values, and whether a NaN was among them.
template <class F>
struct Converter {
  using Raw = typename F::Raw;
  using Key = typename F::Key;
  using Keys = Register<Key>;
  static constexpr int lanes = Keys::lanes;
  static constexpr int shift = 8 * sizeof(Key) - 1;
  static constexpr Key magnitude_bits = static_cast<Key>(std::numeric_limits<Raw>::max());

  Keys greatest = 0;

  Keys load(const Raw* from) {
    auto keys = Keys::load(from);
    if constexpr (F::infinite != 0) {
      const Keys magnitude = keys & magnitude_bits, sign = keys >> shift;
      greatest = max(magnitude, greatest);
      keys = (magnitude ^ sign) - sign;
      if constexpr (F::largest) keys = ~keys;
      return choose(magnitude > F::infinite, kLastKey<Key>, keys);
    }
    return F::largest ? ~keys : keys;
  }
  bool saw_nan() const { return F::infinite != 0 && any(greatest > F::infinite); }
  static Key key(Key wide) {  // the key of a stored value, sign-extended
    if constexpr (F::infinite == 0) return F::largest ? ~wide : wide;
    const Key magnitude = wide & magnitude_bits, sign = wide >> shift, key = (magnitude ^ sign) - sign;
    return magnitude > F::infinite ? kLastKey<Key> : F::largest ? ~key : key;
  }
};

constexpr std::int64_t kScanWidth = 64;
constexpr std::size_t kAhead = 8192;  // bytes: two pages, since the processor's own prefetch stops at the end of a page

// Writes first + the number of each bit that is set; `to` has room for 64 in any case.
inline void take_bits(std::uint64_t bits, std::int32_t first, std::int32_t* to) {
  const int found = __builtin_popcountll(bits);
  if (kCompresses && found > 4) {
    using Columns = Register<std::int32_t>;
    for (int at = 0; at < kScanWidth; at += Columns::lanes) {
      const auto part = static_cast<std::uint32_t>(bits >> at) & ((1u << Columns::lanes) - 1);
      compress(to, part, Columns::numbers() + (first + at));
      to += __builtin_popcount(part);
    }
    return;
  }
  int done = 0;
  do {  // two at a time: most words have no more, so the branch is predictable
    to[done] = first + __builtin_ctzll(bits | std::uint64_t{1} << 63);
    bits &= bits - 1;
    to[done + 1] = first + __builtin_ctzll(bits | std::uint64_t{1} << 63);
    bits &= bits - 1;
    done += 2;
  } while (done < found);
}

// The state of a scan. A few columns beyond `count` are written, so there must be room for kScanWidth more.
struct Scan {
  std::int64_t at = 0;     // first column not yet read
  std::int64_t count = 0;  // number of columns taken
  bool saw_nan = false;
};

// Takes the columns below `end` whose keys are at most `limit`, in order, until `room` has no space for 64 more.
template <class F>
void scan_row(const typename F::Raw* row, std::int64_t end, typename F::Key limit, std::int32_t* columns,
              std::int64_t room, Scan& scan) {
  using C = Converter<F>;
  C convert;
  const typename C::Keys limits = limit;
  std::int64_t at = scan.at, count = scan.count;
  for (; at < end && count + kScanWidth <= room; at += kScanWidth) {
    const typename F::Raw* from = row + at;
    for (std::size_t byte = 0; byte < kScanWidth * sizeof *from; byte += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(from) + kAhead + byte);
    }
    typename F::Raw rest[kScanWidth];
    if (end - at < kScanWidth) {  // reads nothing beyond the end
      std::memset(rest, 0, sizeof rest);
      std::memcpy(rest, from, static_cast<std::size_t>(end - at) * sizeof(typename F::Raw));
      from = rest;
    }
    std::uint64_t passed = 0;
    for (int i = 0; i < kScanWidth; i += C::lanes) passed |= std::uint64_t{bits(convert.load(from + i) <= limits)} << i;
    if (end - at < kScanWidth) passed &= (std::uint64_t{1} << (end - at)) - 1;
    take_bits(passed, static_cast<std::int32_t>(at), columns + count);
    count += __builtin_popcountll(passed);
  }
  scan.at = at < end ? at : end;
  scan.count = count;
  scan.saw_nan |= convert.saw_nan();
}

// Keys of some columns of a row, NaN last.
template <class F>
void keys_of(const typename F::Raw* row, const std::int32_t* columns, std::int64_t count, typename F::Key* keys) {
  for (std::int64_t i = 0; i < count; ++i) keys[i] = row[columns[i]];
  for (std::int64_t i = 0; i < count; ++i) keys[i] = Converter<F>::key(keys[i]);  // a loop of its own is vectorized
}

}  // namespace
}  // namespace tonari
