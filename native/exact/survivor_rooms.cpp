#include "exact/survivor_rooms.hpp"

#include <algorithm>

namespace tonari {
namespace {

constexpr std::int64_t kBytes = sizeof(Survivor);
// The first piece is small, so that a small search uses memory that malloc already has: new pages would take longer
// than the whole search.
constexpr std::int64_t kFirstPiece = (std::int64_t{1} << 16) / kBytes, kLastPiece = (std::int64_t{1} << 20) / kBytes;

// Slightly more than the room, in whole cache lines: rooms of a power of two would all begin in the same sets of a
// cache.
constexpr std::int64_t stride_of(std::int64_t size) { return size / 4 * 4 + 4; }

Survivor* survivors_in(const AlignedBytes& bytes) { return reinterpret_cast<Survivor*>(bytes.get()); }

}  // namespace

SurvivorRooms::SurvivorRooms(std::int64_t limit) : left_(limit), piece_(kFirstPiece) {}

Survivor* SurvivorRooms::first_rooms(std::int64_t count, std::int64_t size) {
  return survivors_in(pieces_.emplace_back(allocate(count * size * kBytes, false)));
}

Survivor* SurvivorRooms::take(std::int64_t size) {
  const std::lock_guard lock(mutex_);
  if (const auto found = empty_.find(size); found != empty_.end() && !found->second.empty()) {
    Survivor* room = found->second.back();
    found->second.pop_back();
    return room;
  }
  const std::int64_t stride = stride_of(size);
  if (stride > left_) return nullptr;
  if (end_ - next_ < stride) {
    const std::int64_t piece = std::max(piece_, stride);
    next_ = survivors_in(pieces_.emplace_back(allocate(piece * kBytes, false)));
    end_ = next_ + piece;
    piece_ = std::min(2 * piece_, kLastPiece);
  }
  left_ -= stride;
  Survivor* room = next_;
  next_ += stride;
  return room;
}

void SurvivorRooms::give_back(Survivor* room, std::int64_t size) {
  const std::lock_guard lock(mutex_);
  empty_[size].push_back(room);
}

}  // namespace tonari
