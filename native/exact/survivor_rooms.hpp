// The memory in which a block of rows keeps its survivors, all of it accounted for.
//
// Rooms are cut from larger and larger pieces of memory; all pieces but the first go back to the operating system.
// malloc would leave holes where rows moved out of rooms that became too small, and would keep what is freed.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/aligned_bytes.hpp"

namespace tonari {

struct Survivor {
  float lower, upper;  // bounds on the score
  std::int64_t id;
};

class SurvivorRooms {
 public:
  // `limit`: how many survivors all rooms from take() may hold together.
  explicit SurvivorRooms(std::int64_t limit);

  // `count` rooms of `size` survivors, side by side; not counted.
  Survivor* first_rooms(std::int64_t count, std::int64_t size);
  // One room, or null where the limit forbids it. From any thread.
  Survivor* take(std::int64_t size);
  // Returns a room from take(), so that another row can have it. From any thread.
  void give_back(Survivor* room, std::int64_t size);

 private:
  std::vector<AlignedBytes> pieces_;
  std::mutex mutex_;  // guards everything below, and pieces_ in take()
  std::int64_t left_;
  std::int64_t piece_;                                    // survivors in the next piece
  Survivor *next_ = nullptr, *end_ = nullptr;             // the rest of the current piece
  std::map<std::int64_t, std::vector<Survivor*>> empty_;  // by size
};

}  // namespace tonari
