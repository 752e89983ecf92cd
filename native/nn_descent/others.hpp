// Gathers the points with which a row is compared in a round. Internal linkage throughout: each instruction set
// compiles its own copy.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "core/room.hpp"
#include "nn_descent/round.hpp"
#include "select/order.hpp"
#include "simd/vec.hpp"

namespace tonari {
namespace {

class Others {
 public:
  explicit Others(const DescentTask& task)
      : task_(task), most_(task.reverse + (task.hubs + task.reverse) * task.breadth) {
    const std::int64_t seen = most_ + task.list + 1;
    bits_ = std::bit_width(static_cast<std::uint64_t>(3 * seen));  // so that at most a third of the table is used
    mask_ = (std::uint32_t{1} << bits_) - 1;
    seen_ = seen_room_.get(std::int64_t{1} << bits_);
    hubs_ = hubs_room_.get(task.hubs + task.reverse);
    ids_ = ids_room_.get(most_ + 1);
    answers_ = answers_room_.get(most_ + 16);  // a whole register may be written at the end
  }

  std::int64_t most() const { return most_ < task_.width ? most_ : task_.width; }

  // Prefetch data that will be read soon: a row's hubs, and then the lists of those hubs.
  void expect_row(std::int64_t u) const {
    fetch(task_.entries + u * task_.list, task_.list);
    fetch(task_.behind + u * task_.reverse, task_.reverse);
  }
  void expect_hubs(std::int64_t u) const {
    const std::int32_t *own = task_.entries + u * task_.list, *behind = task_.behind + u * task_.reverse;
    for (std::int64_t j = 0; j < task_.hubs; ++j) expect_list(own[j]);
    for (std::int64_t j = 0; j < task_.reverse; ++j) expect_list(behind[j]);
  }

  // Finds the ids with which row u is compared, in no order; ids() then returns them. Returns their number.
  std::int64_t gather(std::int64_t u) {
    std::fill(seen_, seen_ + mask_ + 1, kNobody);
    const std::int32_t* own = task_.entries + u * task_.list;
    count_ = 0;
    see(static_cast<std::int32_t>(u));
    for (std::int64_t j = 0; j < task_.list; ++j) {
      if (own[j] >= 0) see(own[j] & kIdMask);
    }
    if (task_.boundary < 0) {
      meet_all<false>(u, own);
    } else {
      below_ = u < task_.boundary;
      meet_all<true>(u, own);
    }
    if (count_ > task_.width) keep_width();
    return count_;
  }

  const std::int32_t* ids() const { return ids_; }

 private:
  static constexpr std::int32_t kNobody = -1;

  static void fetch(const std::int32_t* row, std::int64_t count) {
    if (count == 0) return;
    for (std::int64_t at = 0; at < count; at += 16) __builtin_prefetch(row + at);
    __builtin_prefetch(row + count - 1);  // a row need not begin at a cache line
  }
  void expect_list(std::int32_t hub) const {
    if (hub >= 0) fetch(task_.entries + (hub & kIdMask) * task_.list, task_.breadth);
  }

  // Returns whether an id was not yet in the table, and adds it; without a branch, which could not be predicted.
  bool see(std::int32_t id) {
    std::uint32_t at = static_cast<std::uint32_t>(id) * kScatter >> (32 - bits_);
    while (seen_[at] != id && seen_[at] != kNobody) at = (at + 1) & mask_;
    const bool fresh = seen_[at] == kNobody;
    seen_[at] = id;
    return fresh;
  }

  template <bool ACROSS>
  void meet(std::int32_t id) {
    if (ACROSS && (id < task_.boundary) == below_) return;
    ids_[count_] = id;
    count_ += see(id);
  }

  // Takes the ids of those of a hub's first entries that have the bits of `wanted` and are not missing; returns their
  // number.
  std::int64_t take(const std::int32_t* theirs, std::int32_t wanted, std::int32_t* out) const {
    const std::int32_t matter = wanted | std::numeric_limits<std::int32_t>::min();
    std::int64_t taken = 0, j = 0;
    if constexpr (kCompresses) {
      using Ids = Register<std::int32_t>;
      for (; j < task_.breadth; j += Ids::lanes) {
        const std::int64_t left = task_.breadth - j;
        const std::uint32_t here = left < Ids::lanes ? (1u << left) - 1 : (1u << Ids::lanes) - 1;
        const auto run = Ids::load_first(theirs + j, std::min<std::int64_t>(left, Ids::lanes));
        const std::uint32_t fit = bits((run & matter) == wanted) & here;
        compress(out + taken, fit, run & kIdMask);
        taken += std::popcount(fit);
      }
    }
    for (; j < task_.breadth; ++j) {
      out[taken] = theirs[j] & kIdMask;
      taken += (theirs[j] & matter) == wanted;
    }
    return taken;
  }

  template <bool ACROSS>
  void meet_all(std::int64_t u, const std::int32_t* own) {
    const std::int64_t hubs = find_hubs<ACROSS>(u, own);
    // First collects all ids, then keeps those that were not seen before, both without unpredictable branches.
    std::int64_t answers = 0;
    for (std::int64_t i = 0; i < hubs; ++i) {
      const std::int32_t* theirs = task_.entries + (hubs_[i] & kIdMask) * task_.list;
      // If a hub is not new, only its new entries are taken: they have this bit, and not the sign bit of missing ones.
      const std::int32_t wanted = ~hubs_[i] & kNew;
      answers += take(theirs, wanted, answers_ + answers);
    }
    for (std::int64_t i = 0; i < answers; ++i) meet<ACROSS>(answers_[i]);
  }

  // Lists each hub once, as new if it is new in either direction, so that all ids of both directions are taken.
  template <bool ACROSS>
  std::int64_t find_hubs(std::int64_t u, const std::int32_t* own) {
    std::int64_t forward = 0;
    for (std::int64_t j = 0; j < task_.hubs; ++j) {
      if (own[j] >= 0) hubs_[forward++] = own[j];
    }
    std::int64_t all = forward;
    const std::int32_t* behind = task_.behind + u * task_.reverse;
    for (std::int64_t j = 0; j < task_.reverse && behind[j] >= 0; ++j) {
      meet<ACROSS>(behind[j] & kIdMask);
      const std::int32_t bit = behind[j] & kNew;
      std::int32_t found = 0;
      for (std::int64_t i = 0; i < forward; ++i) {  // without branches, in a few registers
        const bool same = ((hubs_[i] ^ behind[j]) & kIdMask) == 0;
        found |= same;
        hubs_[i] |= same ? bit : 0;
      }
      hubs_[all] = behind[j];
      all += 1 - found;
    }
    return all;
  }

  void keep_width() {
    std::uint32_t* places = places_room_.get(most_);
    for (std::int64_t j = 0; j < count_; ++j) places[j] = static_cast<std::uint32_t>(ids_[j]) * kScatter;
    keep_smallest(places, count_, task_.width);
    count_ = task_.width;
    for (std::int64_t j = 0; j < count_; ++j) ids_[j] = static_cast<std::int32_t>(places[j] * kGather);
  }

  const DescentTask& task_;
  const std::int64_t most_;
  int bits_;
  std::uint32_t mask_;
  bool below_ = false;
  std::int64_t count_ = 0;
  Room<std::int32_t> seen_room_, hubs_room_, ids_room_, answers_room_;
  Room<std::uint32_t> places_room_;
  std::int32_t *seen_, *hubs_, *ids_, *answers_;
};

}  // namespace
}  // namespace tonari
