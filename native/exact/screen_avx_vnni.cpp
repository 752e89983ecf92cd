// The int8 screen for AVX2 machines with AVX-VNNI (Alder Lake, Zen 5 and later): vpdpbusd on 8 lanes.
//
// One instruction replaces pmaddubsw + pmaddwd + paddd of screen_avx2.cpp, without their limit of 7 bits. 6 points x 2
// registers of queries = 12 sums; with 2 queries and 1 broadcast they take 15 of 16 registers.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"

namespace tonari {
namespace {

struct Vnni {
  // Assembly, because for the intrinsic GCC copies the sums between registers and to memory, which takes half of the
  // time.
  static Int32s add(Int32s sum, Int32s query, Int32s point) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.parts.raw) : "x"(query.parts.raw), "x"(point.parts.raw));
    return sum;
  }
};

constexpr int kPoints = 6, kVectors = 2;
constexpr Layout kLayout{
    .point_group = kPoints, .query_tile = kVectors * Floats::lanes, .run = 4, .query_offset = 128, .query_limit = 127};

constexpr Kernel kKernels[] = {{"inner/int8/avx2", Precision::int8, Isa::avx2, Needs::avx_vnni, kLayout,
                                screen_i8<Vnni, kPoints, kVectors>, peak_i8<12, Vnni>}};

}  // namespace

std::span<const Kernel> avx_vnni_kernels() { return kKernels; }

}  // namespace tonari
