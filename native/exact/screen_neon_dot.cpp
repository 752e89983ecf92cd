// The int8 screen for NEON with dot products (SDOT: optional from Armv8.2 on, always there from Armv8.4 on).
//
// One instruction replaces two products and two sums of screen_neon.cpp, without their limit of 7 bits. Both sides are
// signed, so no offset has to be subtracted. 4 points x 4 registers of queries = 16 sums, as for float32.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"

namespace tonari {
namespace {

struct Dot {
  static Int32s add(Int32s sum, Int32s query, Int32s point) {
    const auto q = reinterpret_cast<int8x16_t>(query.parts.raw), x = reinterpret_cast<int8x16_t>(point.parts.raw);
    return Int32s(vdotq_s32(sum.parts.raw, q, x));
  }
};

constexpr int kPoints = 4, kVectors = 4;
constexpr Layout kLayout{.point_group = kPoints, .query_tile = kVectors * Floats::lanes, .run = 4};

constexpr Kernel kKernels[] = {{"inner/int8/neon", Precision::int8, Isa::neon, Needs::neon_dot, kLayout,
                                screen_i8<Dot, kPoints, kVectors>, peak_i8<16, Dot>}};

}  // namespace

std::span<const Kernel> neon_dot_kernels() { return kKernels; }

}  // namespace tonari
