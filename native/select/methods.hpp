// Maps (method, type of the values) to the function that selects. Each instruction set compiles its own copy of
// everything here (select_<isa>.cpp).
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

template <class Key>
SelectRows method_for(SelectMethod method) {
  switch (method) {
    case SelectMethod::insertion: return select_insertion<Key>;
    case SelectMethod::heap: return select_heap<Key>;
    case SelectMethod::merge_queue: return select_merge_queue<Key>;
    case SelectMethod::hierarchical: return select_hierarchical<Key>;
    case SelectMethod::quick: return select_quick<Key>;
    case SelectMethod::bitonic: return select_bitonic<Key>;
    case SelectMethod::threshold: return select_threshold<Key>;
    case SelectMethod::radix: return select_radix<Key>;
  }
  return nullptr;
}

SelectRows method_for(SelectMethod method, ValueType type) {
  return type == ValueType::f64 ? method_for<std::int64_t>(method) : method_for<std::int32_t>(method);
}

}  // namespace
}  // namespace tonari
