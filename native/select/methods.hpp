// Maps (method, type of the values) to the function that selects, with counters or without. Each instruction set
// compiles its own copy of everything here (select_<isa>.cpp), except for queues that are used only if they are named.
#pragma once

#include "select/bitonic.hpp"
#include "select/heap.hpp"
#include "select/hierarchical.hpp"
#include "select/insertion.hpp"
#include "select/merge_queue.hpp"
#include "select/quick.hpp"
#include "select/radix.hpp"
#include "select/task.hpp"
#include "select/threshold.hpp"

namespace tonari {
namespace {

template <class Rows>
std::int64_t select_rows_by(const SelectTask& task, std::int64_t begin, std::int64_t end) {
  return Rows(task).select(begin, end);
}

template <class Key, bool COUNT, bool NAMED>
SelectRows method_for(SelectMethod method) {
  if constexpr (NAMED) {
    if (method == SelectMethod::heap) return select_with<HeapQueue<Key, COUNT>>;
    if (method == SelectMethod::merge_queue) return select_with<MergeQueue<Key, COUNT>>;
  }
  switch (method) {
    case SelectMethod::heap:
    case SelectMethod::merge_queue: return nullptr;
    case SelectMethod::insertion: return select_with<InsertionQueue<Key, COUNT>>;
    case SelectMethod::hierarchical: return select_rows_by<HierarchicalRows<Key, COUNT>>;
    case SelectMethod::quick: return select_rows_by<QuickRows<Key, COUNT>>;
    case SelectMethod::bitonic: return select_rows_by<BitonicRows<Key, COUNT>>;
    case SelectMethod::threshold: return select_rows_by<ThresholdRows<Key, COUNT>>;
    case SelectMethod::radix: return select_rows_by<RadixRows<Key, COUNT>>;
  }
  return nullptr;
}

// NAMED: includes the queues of is_named_only; otherwise these are null.
template <bool COUNT, bool NAMED>
SelectRows method_for(SelectMethod method, ValueType type) {
  return type == ValueType::f64 ? method_for<std::int64_t, COUNT, NAMED>(method)
                                : method_for<std::int32_t, COUNT, NAMED>(method);
}

}  // namespace
}  // namespace tonari
