#include "select/selects.hpp"

namespace tonari {

SelectRows select_rows(Isa isa, SelectMethod method, ValueType type, bool counted) {
  if (counted) return select_rows_counted(method, type);
  const bool named = is_named_only(method);
#if TONARI_X86
  if (isa >= Isa::avx512 && !named) return select_rows_avx512(method, type);
  if (isa >= Isa::avx2) return select_rows_avx2(method, type);
#elif TONARI_ARM64
  if (isa == Isa::neon) return select_rows_neon(method, type);
#endif
  (void)isa;
  return named ? select_rows_counted(method, type) : select_rows_generic(method, type);
}

void add_updates(SelectCounters& counters, const std::int64_t* updates, std::int64_t count) {
  const auto positions = static_cast<std::size_t>(count);
  if (counters.updates.size() < positions) counters.updates.resize(positions);
  for (std::size_t p = 0; p < positions; ++p) counters.updates[p] += updates[p];
}

}  // namespace tonari
