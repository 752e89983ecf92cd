// The base of the queues of W lanes: positions of W entries each; position 0 is the head, the largest entry.
#pragma once

#include "core/room.hpp"
#include "select/lanes.hpp"

namespace tonari {
namespace {

template <class KeyType>
class LaneQueue {
 public:
  using Key = KeyType;
  static constexpr int W = kWidth<Key>;

  explicit LaneQueue(std::int64_t size)
      : size_(size), keys_(room_.get(2 * size * W)), indices_(keys_ + size * W), updates_(updates_room_.get(size)) {
    for (std::int64_t p = 0; p < size; ++p) updates_[p] = 0;
  }

  std::int64_t size() const { return size_; }
  void clear() {
    for (std::int64_t i = 0; i < size_ * W; ++i) {
      keys_[i] = kLastKey<Key>;
      indices_[i] = kNoIndex;
    }
  }
  Key key(std::int64_t position, int lane) const { return keys_[position * W + lane]; }
  Key index(std::int64_t position, int lane) const { return indices_[position * W + lane]; }
  Entries<Key> heads() const { return Entries<Key>::load(keys_, indices_); }
  const std::int64_t* updates() const { return updates_; }
  std::int64_t merges() const { return merges_; }

 protected:
  Room<Key> room_;
  Room<std::int64_t> updates_room_;
  std::int64_t size_;
  Key *keys_, *indices_;
  std::int64_t* updates_;
  std::int64_t merges_ = 0;
};

}  // namespace
}  // namespace tonari
