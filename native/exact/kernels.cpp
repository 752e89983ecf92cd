#include "exact/kernels.hpp"

#include <algorithm>
#include <string_view>

#include "exact/screens.hpp"

namespace tonari {

std::vector<const Kernel*> available_kernels() {
  std::vector<const Kernel*> found;
  const CpuFeatures& cpu = cpu_features();
  auto take = [&](std::span<const Kernel> table, bool level) {
    for (const Kernel& kernel : table) {
      const bool usable = kernel.needs == Needs::nothing || (kernel.needs == Needs::avx_vnni && cpu.avx_vnni) ||
                          (kernel.needs == Needs::avx512_vnni && cpu.avx512_vnni) ||
                          (kernel.needs == Needs::neon_dot && cpu.neon_dot);
      const bool better_found = std::any_of(found.begin(), found.end(), [&](const Kernel* other) {
        return std::string_view(other->name) == kernel.name;
      });
      if (level && usable && !better_found) found.push_back(&kernel);
    }
  };
  take(generic_kernels(), true);
#if TONARI_X86
  take(avx_vnni_kernels(), cpu.avx2);  // first, since it replaces a kernel of the same name
  take(avx2_kernels(), cpu.avx2);
  take(avx512_kernels(), cpu.avx512);
  take(amx_kernels(), cpu.amx);
#elif TONARI_ARM64
  take(neon_dot_kernels(), true);  // first, since it replaces a kernel of the same name
  take(neon_kernels(), true);
#endif
  return found;
}

const Kernel& look_kernel(const Kernel& screen) {
  if (screen.precision != Precision::float32) return screen;
  const auto alike = [&screen](const Kernel* other) {
    return other->precision == Precision::int8 && other->isa == screen.isa &&
           other->layout.point_group == screen.layout.point_group &&
           other->layout.query_tile == screen.layout.query_tile;
  };
  const std::vector<const Kernel*> kernels = available_kernels();
  const auto found = std::find_if(kernels.begin(), kernels.end(), alike);
  return found == kernels.end() ? screen : **found;
}

double accumulation_error(const Kernel& kernel, std::int64_t d) {
  constexpr double unit = 0x1p-24;
  // Sums in float32 round once per term; int8 sums are exact and round only in conversion and scaling. The constant
  // covers the rounding of a(x), of evaluating the bound and of the comparison, and leaves room for second-order terms.
  const double terms = kernel.precision == Precision::int8 ? 0.0 : static_cast<double>(d);
  const double n = (terms + 16.0) * unit;
  return n / (1 - 2 * n);
}

}  // namespace tonari
