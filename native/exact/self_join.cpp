#include "exact/self_join.hpp"

#include <algorithm>
#include <limits>
#include <thread>

#include "exact/pack_loops.hpp"

namespace tonari {
namespace {

constexpr std::int64_t kFirstRoom = 24;  // survivors beyond 2 k before the first condensing, for all active rows

// Tells the processor that this thread waits for another one's store.
inline void pause() {
#if TONARI_X86
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A row's survivors belong to one thread at a time: mostly for the few instructions that keep a survivor, but sometimes
// until the row is condensed or resolved exactly, or until a suspended thread runs again.
class Locked {
 public:
  explicit Locked(std::atomic_flag& flag) : flag_(flag) {
    constexpr int patience = 64;  // pauses, a few microseconds altogether
    for (int pauses = 0; flag_.test_and_set(std::memory_order_acquire);) {
      while (flag_.test(std::memory_order_relaxed)) {
        if (pauses < patience) {
          pause(), ++pauses;
        } else {
          std::this_thread::yield();
        }
      }
    }
  }
  ~Locked() { flag_.clear(std::memory_order_release); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  std::atomic_flag& flag_;
};

}  // namespace

SelfJoin::SelfJoin(const Kernel& kernel, const Form& form, const RowsView& points, const SearchSpec& spec, Isa isa)
    : kernel_(kernel), form_(form), points_(points), states_(form, points, points, spec, isa) {}

void SelfJoin::open(std::int64_t begin, std::int64_t end) {
  const auto count = static_cast<std::size_t>(end - begin);
  states_.open(begin, end - begin, kFirstRoom);
  locks_ = std::make_unique<std::atomic_flag[]>(count);
  low_.assign(count, std::numeric_limits<float>::infinity());
  own_.assign(count, 0.0f);
}

void SelfJoin::prepare(std::int64_t begin, std::int64_t end, const PackedPoints& packed) {
  const PackLoops& loops = pack_loops(kernel_.isa);
  std::vector<double> row(static_cast<std::size_t>(padded(form_.d)));
  const PointsView view = packed.view();
  for (std::int64_t id = begin; id < end; ++id) {
    const RowTerms terms = loops.read(form_, points_, id, row.data());
    states_.start(id - states_.begin(), query_term(form_, terms), is_beyond(form_, terms));
    low_[static_cast<std::size_t>(id - states_.begin())] = view.low[id - packed.base()];
    own_[static_cast<std::size_t>(id - states_.begin())] = view.error_own[id - packed.base()];
  }
}

void SelfJoin::know(std::int64_t begin, std::int64_t end, const double* values) {
  for (std::int64_t id = begin; id < end; ++id) states_.know(id - states_.begin(), values[id - begin]);
}

template <class Value, class Index>
std::int64_t SelfJoin::finish(std::int64_t begin, std::int64_t end, Value* distances, Index* indices,
                              std::uint8_t* status, std::int64_t first, std::int64_t last) {
  Scratch scratch;
  const std::int64_t first_row = begin - states_.begin(), last_row = end - states_.begin();
  for (std::int64_t row = first_row; row < last_row; ++row) {
    if (states_.is_beyond(row)) states_.search_exactly(row, first, last, scratch);
  }
  return states_.finish(first_row, last_row, distances, indices, status, scratch);
}

template std::int64_t SelfJoin::finish(std::int64_t, std::int64_t, float*, std::int32_t*, std::uint8_t*, std::int64_t,
                                       std::int64_t);
template std::int64_t SelfJoin::finish(std::int64_t, std::int64_t, float*, std::int64_t*, std::uint8_t*, std::int64_t,
                                       std::int64_t);
template std::int64_t SelfJoin::finish(std::int64_t, std::int64_t, double*, std::int32_t*, std::uint8_t*, std::int64_t,
                                       std::int64_t);
template std::int64_t SelfJoin::finish(std::int64_t, std::int64_t, double*, std::int64_t*, std::uint8_t*, std::int64_t,
                                       std::int64_t);

void JoinWorker::open(std::int64_t begin, std::int64_t end) {
  begin_ = begin - join_.states_.begin();
  count_ = end - begin;
  packed_ = PackedQueries(join_.kernel_, join_.form_, join_.points_, begin, end);
  const auto tiles = static_cast<std::size_t>(packed_.tiles);
  const auto width = static_cast<std::ptrdiff_t>(join_.kernel_.layout.query_tile);
  tile_norm_.assign(tiles, 0.0f), tile_rest_.assign(tiles, 0.0f);
  for (std::size_t t = 0; t < tiles; ++t) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t) * width;
    tile_norm_[t] = *std::max_element(packed_.norm.begin() + at, packed_.norm.begin() + at + width);
    tile_rest_[t] = *std::max_element(packed_.rest.begin() + at, packed_.rest.begin() + at + width);
  }
  // The last tile may be wider than the block: nobody finds what fills it.
  const std::size_t first = static_cast<std::size_t>(begin_), rows = static_cast<std::size_t>(end - begin);
  low_.assign(tiles * static_cast<std::size_t>(width), std::numeric_limits<float>::infinity());
  own_.assign(low_.size(), 0.0f);
  std::copy_n(join_.low_.data() + first, rows, low_.data());
  std::copy_n(join_.own_.data() + first, rows, own_.data());
}

void JoinWorker::screen(const PackedPoints& points, std::int64_t group_begin, std::int64_t group_end, bool both) {
  RowStates& states = join_.states_;
  struct Keeper {
    RowStates& states;
    std::atomic_flag* locks;
    Scratch& scratch;
    std::int64_t queries;  // first query's place among the active rows
    std::int64_t points;   // first point's place among the active rows; outside of them if it is not one
    std::int64_t begin;    // first active row
    std::int64_t count;    // queries; the last tile may have more, filled with zeros

    void keep(std::int64_t row, Survivor survivor) {
      const Locked lock(locks[row]);
      states.keep(row, survivor, false, scratch);
    }
  } keeper{states, join_.locks_.get(), scratch_, begin_, points.base() - states.begin(), states.begin(), count_};

  QueriesView queries = packed_.view();
  queries.threshold = states.thresholds() + begin_;
  ReverseView reverse;
  if (both) {
    reverse = {.threshold = states.thresholds() + keeper.points,
               .low = low_.data(),
               .own = own_.data(),
               .tile_norm = tile_norm_.data(),
               .tile_rest = tile_rest_.data()};
  }
  join_.kernel_.screen({.points = points.view(),
                        .queries = queries,
                        .reverse = reverse,
                        .group_begin = group_begin,
                        .group_end = group_end,
                        .stride = 0,
                        .take_stride = false,
                        .depth = packed_depth(join_.kernel_, join_.form_.columns()),
                        .keep =
                            [](void* context, std::int64_t row, float lower, float upper, std::int64_t point) {
                              Keeper& self = *static_cast<Keeper*>(context);
                              if (row >= self.count) return;
                              self.keep(self.queries + row, {lower, upper, self.begin + self.points + point});
                            },
                        .keep_reverse =
                            [](void* context, std::int64_t point, float lower, float upper, std::int64_t row) {
                              Keeper& self = *static_cast<Keeper*>(context);
                              self.keep(self.points + point, {lower, upper, self.begin + self.queries + row});
                            },
                        .context = &keeper});
}

}  // namespace tonari
