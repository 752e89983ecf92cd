// The buffered traversal, written once for every instruction set (simd/vec.hpp). Internal linkage throughout: each
// instruction set compiles its own copy.
#pragma once

#include <chrono>

#include "core/room.hpp"
#include "kdtree/buffered.hpp"
#include "kdtree/leaf_scan.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kBatch = 5;  // M = 5 B

// Adds the time between its construction and its destruction to a sum.
class Clocked {
 public:
  explicit Clocked(double& seconds) : seconds_(seconds) {}
  Clocked(const Clocked&) = delete;
  Clocked& operator=(const Clocked&) = delete;
  ~Clocked() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  double& seconds_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class BufferedTree final : public TreeRounds {
  static constexpr int W = kTreeWidth;
  static constexpr int kShift = std::countr_zero(static_cast<unsigned>(W));
  using Key = ChildKey<float>;
  using K = ChildKeys<float>;
  using Scan = LeafScan<SquareStep, float>;
  using Query = Scan::Query;
  static constexpr std::int32_t kNone = -1;

  // The state of a query while it waits for its next leaf; its values, list and keys are stored elsewhere.
  struct State {
    Query query;
    std::int32_t leaf = kNone;  // the last leaf that the query entered
    std::int32_t next = kNone;  // the next query of the same buffer
  };
  struct Buffer {
    std::int32_t first = kNone;
    std::int32_t held = 0;
  };

 public:
  BufferedTree(const TreeTask& task, std::int64_t begin, std::int64_t end, std::int64_t buffer)
      : task_(task),
        tree_(*task.tree),
        scan_(task),
        begin_(begin),
        count_(static_cast<std::int32_t>(end - begin)),
        buffer_(buffer),
        levels_(static_cast<std::int64_t>(tree_.boxes.size())),
        values_(value_room_.get(count_ * tree_.d)),
        lists_(list_room_.get(count_ * scan_.list_bytes())),
        keys_(key_room_.get(count_ * levels_)),
        states_(state_room_.get(count_)),
        reinsert_(reinsert_room_.get(count_)),
        filled_(filled_room_.get(count_)),
        buffers_(buffer_room_.get(std::int64_t{1} << tree_.height)) {
    std::fill_n(buffers_, std::int64_t{1} << tree_.height, Buffer{});
  }

  std::int64_t run(std::int64_t budget, TreeVisits& visits) override {
    const std::int64_t before = finished_;
    left_ = std::max<std::int64_t>(1, budget / tree_.d);
    while (finished_ < count_ && left_ > 0) {
      if (emptying_) process(visits);
      else find(visits);
    }
    return finished_ - before;
  }

 private:
  // FindLeafBatch for the queries of the round, as far as the budget allows.
  void find(TreeVisits& visits) {
    const Clocked clocked(counts.find_seconds);
    if (batch_ == 0) {
      const std::int64_t most = kBatch * buffer_;
      again_ = waiting_again_ > 0;
      batch_ = std::min<std::int64_t>(most, again_ ? waiting_again_ : count_ - came_);
      ++counts.rounds;
    }
    for (; batch_ > 0 && left_ > 0; --batch_) {
      const std::int32_t slot = again_ ? take_again() : came_++;
      State& state = states_[slot];
      if (!again_) start(slot, state);
      state.leaf = next_leaf(slot, state, visits);
      if (state.leaf == kNone) {
        scan_.write(state.query, row_of(slot));
        ++finished_;
      } else {
        wait(slot, state);
      }
    }
    if (batch_ == 0 && filled_buffers_ > 0 && (full_ || (waiting_again_ == 0 && came_ == count_))) {
      emptying_ = true;
      ++counts.emptied;
      counts.full += full_;
    }
  }

  void start(std::int32_t slot, State& state) {
    state = {.query = scan_.begin(row_of(slot), values_ + slot * tree_.d, lists_ + slot * scan_.list_bytes())};
  }

  void wait(std::int32_t slot, State& state) {
    Buffer& buffer = buffers_[state.leaf];
    if (buffer.held == 0) filled_[filled_buffers_++] = state.leaf;
    state.next = buffer.first;
    buffer.first = slot;
    full_ |= 2 * std::int64_t{++buffer.held} >= buffer_;
  }

  // Returns the next leaf that a query enters, or kNone.
  std::int32_t next_leaf(std::int32_t slot, const State& state, TreeVisits& visits) {
    Key* const entered = keys_ + slot * levels_;
    const Key limit = std::bit_cast<Key>(state.query.threshold);
    const float* const values = state.query.values;
    const auto top = static_cast<int>(levels_) - 1;
    const bool fresh = state.leaf == kNone;
    int level = fresh ? top : 0;
    std::int64_t node = fresh ? 0 : state.leaf >> kShift;
    visits.nodes += fresh;
    auto keys = open(level, node, values);
    if (!fresh) keys = beyond(keys, entered[0], state.leaf & (W - 1));
    for (;;) {
      const Key nearest = nearest_of(keys);
      if (nearest > limit) {
        if (level++ == top) return kNone;
        const auto lane = static_cast<int>(node & (W - 1));
        node >>= kShift;
        keys = beyond(open(level, node, values), entered[level], lane);
        continue;
      }
      node = node * W + std::countr_zero(bits(keys == nearest));
      entered[level] = nearest;
      if (level == 0) return static_cast<std::int32_t>(node);
      ++visits.nodes;
      keys = open(--level, node, values);
    }
  }

  K open(int level, std::int64_t node, const float* values) {
    left_ -= 2 * W;
    return child_keys<SquareStep>(tree_, level, node, values);
  }

  // Masks the keys of children that do not come after (key, lane).
  static K beyond(K keys, Key key, int lane) {
    const auto before = (keys < K(key)) | ((keys == K(key)) & K::Truth::of((2u << lane) - 1));
    return choose(before, K(kNoChild<float>), keys);
  }

  // ProcessAllBuffers, as far as the budget allows.
  void process(TreeVisits& visits) {
    const Clocked clocked(counts.process_seconds);
    for (; emptied_ < filled_buffers_; ++emptied_) {
      const std::int32_t leaf = filled_[emptied_];
      Buffer& buffer = buffers_[leaf];
      const std::int64_t points = tree_.begins[leaf + 1] - tree_.begins[leaf];
      while (buffer.held > 0) {
        if (left_ <= 0) return;
        const std::int64_t queries = compare(leaf, buffer);
        ++counts.tiles;
        visits.leaves += queries;
        visits.points += queries * points;
        left_ -= queries * points;
      }
    }
    filled_buffers_ = emptied_ = 0;
    emptying_ = full_ = false;
  }

  // Takes some queries out of a leaf's buffer and compares them with its points; returns their number.
  std::int64_t compare(std::int32_t leaf, Buffer& buffer) {
    constexpr int most = Scan::kMost;
    Query nobody;  // an empty query that fills the tile: no point passes its negative threshold
    nobody.values = values_;
    Query* tile[most];
    std::fill_n(tile, most, &nobody);
    const int queries = std::min(most, buffer.held);
    for (int q = 0; q < queries; ++q) {
      State& state = states_[buffer.first];
      tile[q] = &state.query;
      put_again(buffer.first);
      buffer.first = state.next;
    }
    buffer.held -= queries;
    if (queries == 1) scan_.scan<1>(leaf, {tile[0]});
    else scan_.scan<most>(leaf, tile);
    return queries;
  }

  // The queue `reinsert`: a ring.
  void put_again(std::int32_t slot) { reinsert_[wrapped(first_again_ + waiting_again_++)] = slot; }
  std::int32_t take_again() {
    const std::int32_t slot = reinsert_[first_again_];
    first_again_ = wrapped(first_again_ + 1);
    --waiting_again_;
    return slot;
  }
  std::int64_t wrapped(std::int64_t place) const { return place < count_ ? place : place - count_; }

  std::int64_t row_of(std::int32_t slot) const {
    return task_.order != nullptr ? task_.order[begin_ + slot] : begin_ + slot;
  }

  const TreeTask& task_;
  const TreeView& tree_;
  Scan scan_;
  const std::int64_t begin_;
  const std::int32_t count_;  // number of queries in the block; a slot is a query's place in it
  const std::int64_t buffer_, levels_;

  Room<float> value_room_;
  Room<std::byte> list_room_;
  Room<Key> key_room_;
  Room<State> state_room_;
  Room<std::int32_t> reinsert_room_, filled_room_;
  Room<Buffer> buffer_room_;
  float* const values_;           // [slot][column]
  std::byte* const lists_;        // [slot][byte]
  Key* const keys_;               // [slot][level]: the key of the last child that was entered
  State* const states_;           // [slot]
  std::int32_t* const reinsert_;  // a ring of slots
  std::int32_t* const filled_;    // leaves whose buffers hold a query
  Buffer* const buffers_;         // [leaf]

  std::int32_t came_ = 0;  // queries taken from input
  std::int64_t finished_ = 0;
  std::int64_t first_again_ = 0, waiting_again_ = 0;
  std::int64_t batch_ = 0;                         // queries that the round must still take
  bool again_ = false;                             // whether the round takes queries from reinsert
  bool full_ = false;                              // whether a buffer is half full
  bool emptying_ = false;                          // whether buffers are being emptied
  std::int64_t filled_buffers_ = 0, emptied_ = 0;  // numbers of buffers that are filled, and that have been emptied
  std::int64_t left_ = 0;                          // number of rows (points and bounds) that this call may still read
};

inline std::unique_ptr<TreeRounds> tree_rounds_tile(const TreeTask& task, std::int64_t begin, std::int64_t end,
                                                    std::int64_t buffer) {
  return std::make_unique<BufferedTree>(task, begin, end, buffer);
}

}  // namespace
}  // namespace tonari
