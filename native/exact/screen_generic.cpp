// The screen in portable C++: four lanes, which compilers map to baseline vector registers.
#include "exact/peak.hpp"
#include "exact/screen_tile.hpp"
#include "exact/screens.hpp"

namespace tonari {
namespace {

constexpr int kPoints = 4, kVectors = 2;
constexpr Layout kLayout{.point_group = kPoints, .query_tile = kVectors * Floats::lanes};

constexpr char kSuffix[] = "/float32/generic";
constexpr auto kTable = float32_kernels<kSuffix, kPoints, kVectors>(
    Elementwise{},
    Kernel{.precision = Precision::float32, .isa = Isa::generic, .layout = kLayout, .peak = peak_f32<8>});

}  // namespace

std::span<const Kernel> generic_kernels() { return kTable.kernels; }

}  // namespace tonari
