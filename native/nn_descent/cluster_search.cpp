#include "nn_descent/cluster_search.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace tonari {
namespace {

// The buffers that a thread reuses for all of its blocks.
class Searcher {
 public:
  explicit Searcher(const ClusterTask& task) : task_(task), votes_(static_cast<std::size_t>(task.clusters), 0) {}

  void search(std::int64_t piece) {
    const Pieces& seekers = task_.seekers;
    const std::int64_t first = seekers.begins[piece], count = seekers.begins[piece + 1] - first;
    const std::int32_t* rows = seekers.order + first;
    const std::int64_t side = seekers.sides[piece], wanted = task_.across ? 1 - side : 0;
    const bool itself = task_.places != nullptr;  // whether a row is among its own candidates
    const std::int64_t k = std::min(task_.size, task_.there[wanted] - itself);
    choose(piece, wanted, k + itself);
    gather(rows, count);
    ScoreBlock& block = block_of(k + itself);
    block.open({values_.data(), count, task_.rows.d, task_.rows.dtype}, 0, count);
    for (const std::int64_t at : chosen_) {
      block.screen(*task_.packed[static_cast<std::size_t>(at)], task_.members.begins[at]);
    }
    for (std::int64_t j = 0; j < count; ++j) {
      std::int32_t* entries = task_.entries + rows[j] * task_.size;
      const std::int64_t found = block.finish(j, itself ? task_.places[rows[j]] : -1, k, entries);
      if (found < k) throw std::logic_error("a row met fewer members than it needs");
      for (std::int64_t at = 0; at < k; ++at) entries[at] = task_.members.order[entries[at]] | task_.mark;
    }
  }

 private:
  // Chooses the pieces that a block is compared with: those of the clusters that its rows name and that its own cluster
  // ranks, then others until they have `least` members.
  void choose(std::int64_t piece, std::int64_t wanted, std::int64_t least) {
    const Pieces &seekers = task_.seekers, &members = task_.members;
    named_.clear();
    for (std::int64_t at = seekers.begins[piece]; at < seekers.begins[piece + 1]; ++at) {
      const std::int32_t* names = task_.near + seekers.order[at] * task_.named;
      for (std::int64_t j = 0; j < task_.named; ++j) {
        std::int32_t& votes = votes_[static_cast<std::size_t>(names[j])];
        if (votes == 0) named_.push_back(names[j]);
        votes += static_cast<std::int32_t>(task_.named - j);  // a nearer cluster gets more votes
      }
    }
    std::sort(named_.begin(), named_.end(), [this](std::int32_t a, std::int32_t b) {
      const std::int32_t of_a = votes_[static_cast<std::size_t>(a)], of_b = votes_[static_cast<std::size_t>(b)];
      return of_a > of_b || (of_a == of_b && a < b);
    });
    chosen_.clear();
    met_ = 0;
    const std::int64_t probes = std::min(task_.probes, std::ssize(named_));
    for (std::int64_t i = 0; i < probes; ++i) meet(named_[static_cast<std::size_t>(i)], piece, wanted);
    const std::int32_t* ranked = task_.ranked + seekers.clusters[piece] * task_.ranks;
    for (std::int64_t left = task_.probes - probes, j = 0; left > 0 && j < task_.ranks; ++j) {
      if (votes_[static_cast<std::size_t>(ranked[j])] == 0) meet(ranked[j], piece, wanted), --left;
    }
    for (const std::int32_t cluster : named_) votes_[static_cast<std::size_t>(cluster)] = 0;
    if (met_ >= least) return;
    taken_.assign(task_.packed.size(), false);
    for (const std::int64_t at : chosen_) taken_[static_cast<std::size_t>(at)] = true;
    for (std::int64_t at = 0; at < std::ssize(task_.packed) && met_ < least; ++at) {
      if (!taken_[static_cast<std::size_t>(at)] && members.sides[at] == wanted) take(at);
    }
  }

  void meet(std::int32_t cluster, std::int64_t piece, std::int64_t wanted) {
    const Pieces &seekers = task_.seekers, &members = task_.members;
    const std::int64_t own = seekers.clusters[piece], of_own = seekers.firsts[own + 1] - seekers.firsts[own];
    const std::int64_t begin = members.firsts[cluster], count = members.firsts[cluster + 1] - begin;
    // In a large cluster, different blocks begin with different pieces.
    const std::int64_t turn = count * (piece - seekers.firsts[own]) / of_own;
    for (std::int64_t j = 0; j < count && met_ < task_.most; ++j) {
      const std::int64_t at = begin + (turn + j) % count;
      if (members.sides[at] == wanted) take(at);
    }
  }

  void take(std::int64_t at) {
    chosen_.push_back(at);
    met_ += task_.members.begins[at + 1] - task_.members.begins[at];
  }

  void gather(const std::int32_t* rows, std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(task_.rows.d) * dtype_size(task_.rows.dtype);
    values_.resize(static_cast<std::size_t>(count) * bytes);
    for (std::int64_t j = 0; j < count; ++j) {
      std::memcpy(values_.data() + static_cast<std::size_t>(j) * bytes, row_pointer(task_.rows, rows[j]), bytes);
    }
  }

  // There is one block for each count, because the two sides may have different counts.
  ScoreBlock& block_of(std::int64_t count) {
    for (auto& [known, block] : blocks_) {
      if (known == count) return *block;
    }
    blocks_.emplace_back(count, std::make_unique<ScoreBlock>(*task_.kernel, *task_.form, count));
    return *blocks_.back().second;
  }

  const ClusterTask& task_;
  std::vector<std::int32_t> votes_, named_;
  std::vector<std::int64_t> chosen_;
  std::vector<bool> taken_;
  std::int64_t met_ = 0;
  std::vector<std::byte> values_;
  std::vector<std::pair<std::int64_t, std::unique_ptr<ScoreBlock>>> blocks_;
};

}  // namespace

void search_clusters(const ClusterTask& task, std::int64_t begin, std::int64_t end) {
  Searcher searcher(task);
  for (std::int64_t piece = begin; piece < end; ++piece) searcher.search(piece);
}

}  // namespace tonari
