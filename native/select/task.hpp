// k-selection: the task of every method, and the counters. Each method has a file of its own in this folder.
#pragma once

#include <cstdint>
#include <vector>

namespace tonari {

enum class ValueType : int { f32, f16, bf16, f64, i32, u8 };

constexpr int value_bytes(ValueType type) {
  switch (type) {
    case ValueType::u8: return 1;
    case ValueType::f16:
    case ValueType::bf16: return 2;
    case ValueType::f64: return 8;
    default: return 4;
  }
}

enum class SelectMethod : int { insertion, heap, merge_queue, hierarchical, quick, bitonic, threshold, radix };

// Buffered Search (tang2015 III-D): what happens to a value below the queue's head.
enum class Buffering : int {
  none,    // inserted at once, while lanes without a value wait
  own,     // appended to the lane's buffer; a lane whose buffer is full empties only that buffer
  full,    // as soon as a buffer is full, all lanes empty theirs together
  sorted,  // the same after sorting each buffer: the smallest values are inserted first and rule out others
};

// A method reads only its own options; callers refuse all others.
struct SelectOptions {
  Buffering buffer = Buffering::none;
  std::int64_t buffer_size = 16;  // number of values per lane
  std::int64_t group = 0;         // Hierarchical Partition: group size; 0 for none
  std::int64_t levels = 0;        // lists above the values; 0 for as many as leave at most k groups
  std::int64_t m = 8;             // merge queue: size of its first two levels
  bool aligned = true;            // merge queue: all lanes merge when one must
  std::int64_t samples = 0;       // threshold: values from which a threshold is chosen
  std::int64_t batch = 16;        // threshold: rows compacted into buffers of one size
  bool heap = true;               // threshold: a min-max heap selects from what is left, else halving
  std::int64_t bits = 8;          // radix: bits per digit
};

// Counters are filled only if requested, by separate copies of the methods (select_counted.cpp), so that the usual
// copies lose no time. No count depends on the instruction set.
struct SelectCounters {
  std::vector<std::int64_t> updates;  // writes at each position of the queue, head (largest) first
  std::int64_t merges = 0;            // merges of queue levels, one per lane that takes part
  std::int64_t flushes = 0;           // number of times that buffers were emptied, by one or several lanes
  std::int64_t examined = 0;          // values compared with a queue's head or a threshold, or partitioned
  std::int64_t lanes = 0;             // rows that are processed together
  double compression = 0;             // matsumoto2015 eq. 4: sum over batches of n / (largest count left)
  std::int64_t batches = 0;
  double threshold_ratio = 0;  // eq. 3: sum over rows of (k-th smallest) / (threshold)
  std::int64_t rows = 0;
};

struct SelectTask {
  const void* values = nullptr;  // [row * stride + column]
  std::int64_t stride = 0;       // values from a row to the next
  ValueType type = ValueType::f32;
  std::int64_t n = 0;                     // values per row, below 2^31
  const std::int64_t* lengths = nullptr;  // length of each row, at most n; null: all are n
  std::int64_t k = 0;
  bool largest = false;
  bool sorted = true;
  SelectOptions options;
  void* out_values = nullptr;           // (rows, k), of type `type`
  std::int32_t* out_indices = nullptr;  // (rows, k); -1 where a row has fewer than k values
  SelectCounters* counters = nullptr;

  std::int64_t length(std::int64_t row) const { return lengths == nullptr ? n : lengths[row]; }
};

// Selects in rows [begin, end); returns the first of them that has a NaN, or -1. NaNs are ordered last in any case.
using SelectRows = std::int64_t (*)(const SelectTask& task, std::int64_t begin, std::int64_t end);

}  // namespace tonari
