// The memory in which a block of rows keeps its survivors; all of it is counted.
//
// Rooms are cut from larger and larger pieces of memory; all pieces but the first are returned to the operating system.
// malloc would leave holes when rows move out of rooms that became too small, and would not return freed memory.
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
  // `limit` is the number of survivors that all rooms from take() may hold together.
  explicit SurvivorRooms(std::int64_t limit);

  // Returns `count` adjacent rooms of `size` survivors; they do not count towards the limit.
  Survivor* first_rooms(std::int64_t count, std::int64_t size);
  // Returns one room, or null if the limit is reached. May be called from any thread.
  Survivor* take(std::int64_t size);
  // Gives back a room from take(), so that another row can use it. May be called from any thread.
  void give_back(Survivor* room, std::int64_t size);

 private:
  std::vector<AlignedBytes> pieces_;
  std::mutex mutex_;  // guards everything below, and pieces_ in take()
  std::int64_t left_;
  std::int64_t piece_;                                    // survivors in the next piece
  Survivor *next_ = nullptr, *end_ = nullptr;             // the rest of the current piece
  std::map<std::int64_t, std::vector<Survivor*>> empty_;  // free rooms by size
};

}  // namespace tonari
