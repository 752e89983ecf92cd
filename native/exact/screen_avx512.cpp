// The screen for AVX-512: 16 lanes, 32 registers.
//
// 12 points x 2 registers of queries = 24 sums; with 2 queries and 1 broadcast they take 27 of 32 registers. 24
// multiply-adds (12 cycles on two ports) need 14 loads (7 cycles). int8 has the same shape with vpdpbusd, which adds
// four products per lane (AVX512-VNNI): queries are packed unsigned (plus 128), and each point's sum starts at -128
// times the sum of its bytes.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"

namespace tonari {
namespace {

// Adds four products of unsigned query bytes and signed point bytes to each lane.
struct Vnni {
  // Assembly, because for the intrinsic GCC copies the sums between registers and to memory, which takes half of the
  // time.
  static Int32s add(Int32s sum, Int32s query, Int32s point) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.parts.raw) : "v"(query.parts.raw), "v"(point.parts.raw));
    return sum;
  }
};

constexpr int kPoints = 12, kVectors = 2;
constexpr Layout kLayout{.point_group = kPoints, .query_tile = kVectors * Floats::lanes};
constexpr Layout kLayoutI8{
    .point_group = kPoints, .query_tile = kVectors * Floats::lanes, .run = 4, .query_offset = 128, .query_limit = 127};

constexpr char kSuffix[] = "/float32/avx512";
constexpr auto kTable = float32_kernels<kSuffix, kPoints, kVectors>(
    Elementwise{}, Kernel{.precision = Precision::float32, .isa = Isa::avx512, .layout = kLayout, .peak = peak_f32<20>},
    Kernel{"inner/int8/avx512", Precision::int8, Isa::avx512, Needs::avx512_vnni, kLayoutI8,
           screen_i8<Vnni, kPoints, kVectors>, peak_i8<20, Vnni>});

}  // namespace

std::span<const Kernel> avx512_kernels() { return kTable.kernels; }

}  // namespace tonari
