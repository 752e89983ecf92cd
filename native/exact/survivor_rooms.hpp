// Where rows keep their survivors: the memory of a block of rows, all of it accounted for.
//
// Rooms are cut off ever larger pieces of memory, which all but the first go back to the operating system. malloc would
// leave holes where rows have moved out of rooms that they outgrew, and keep what is free.
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
  // `limit`: survivors that all rooms from take() may hold together.
  explicit SurvivorRooms(std::int64_t limit);

  // `count` rooms of `size` survivors, side by side; not counted.
  Survivor* first_rooms(std::int64_t count, std::int64_t size);
  // One room, or null where the limit forbids it. From any thread.
  Survivor* take(std::int64_t size);
  // Lets another row have a room that came from take(). From any thread.
  void give_back(Survivor* room, std::int64_t size);

 private:
  std::vector<AlignedBytes> pieces_;
  std::mutex mutex_;  // for all below, and pieces_ in take()
  std::int64_t left_;
  std::int64_t piece_;                                    // survivors in the next piece
  Survivor *next_ = nullptr, *end_ = nullptr;             // of the piece that rooms are being cut off
  std::map<std::int64_t, std::vector<Survivor*>> empty_;  // by size
};

}  // namespace tonari
