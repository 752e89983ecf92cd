// The methods of k-selection for each instruction set, and the choice of one.
#pragma once

#include "core/cpu.hpp"
#include "select/task.hpp"

namespace tonari {

SelectRows select_rows_generic(SelectMethod method, ValueType type);
#if TONARI_X86
SelectRows select_rows_avx2(SelectMethod method, ValueType type);
SelectRows select_rows_avx512(SelectMethod method, ValueType type);
#elif TONARI_ARM64
SelectRows select_rows_neon(SelectMethod method, ValueType type);
#endif
SelectRows select_rows_counted(SelectMethod method, ValueType type);

// Whether auto never chooses this queue on a CPU (src/tonari/select/auto_table.json). AVX-512 then runs AVX2's copy,
// and processors without vectors run the copy with counters.
constexpr bool is_named_only(SelectMethod method) {
  return method == SelectMethod::heap || method == SelectMethod::merge_queue;
}

// The function for a task of values of this type; with counters, it is the same for all instruction sets.
SelectRows select_rows(Isa isa, SelectMethod method, ValueType type, bool counted);

// Adds to counters->updates[0, count), which grows as needed. Defined in baseline code, so that no library code is
// compiled for one instruction set and then linked for all.
void add_updates(SelectCounters& counters, const std::int64_t* updates, std::int64_t count);

}  // namespace tonari
