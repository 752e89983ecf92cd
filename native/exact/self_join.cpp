#include "exact/self_join.hpp"

#include <algorithm>
#include <limits>
#include <thread>

#include "exact/pack_loops.hpp"

namespace tonari {
namespace {

// an active row is first condensed when it has this many survivors more than 2 k
constexpr std::int64_t kFirstRoom = 24;

// Tells the processor that this thread waits for another one's store.
inline void pause() {
#if TONARI_X86
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Holds a row's lock: only one thread at a time may use the row's survivors. Usually it is held for the few
// instructions that keep a survivor, but sometimes until the row is condensed or resolved exactly, or a suspended
// thread resumes.
class Locked {
 public:
  explicit Locked(std::atomic_flag& flag) : flag_(flag) {
    constexpr int patience = 64;  // number of pauses, which take a few microseconds in total
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

SelfJoin::SelfJoin(const Kernel& kernel, const Form& form, const Form* look, const RowsView& points,
                   const SearchSpec& spec, Isa isa)
    : kernel_(kernel),
      form_(form),
      look_(look),
      points_(points),
      sketch_(spec.sketch),
      states_(form, points, points, spec, isa) {}

void SelfJoin::open(std::int64_t begin, std::int64_t end) {
  const auto count = static_cast<std::size_t>(end - begin);
  states_.open(begin, end - begin, kFirstRoom);
  locks_ = std::make_unique<std::atomic_flag[]>(count);
  for (AsPoints* const rows : {&whole_, &contracted_}) {
    if (rows == &contracted_ && look_ == nullptr) continue;
    rows->low.assign(count, std::numeric_limits<float>::infinity());
    rows->own.assign(count, 0.0f);
  }
}

void SelfJoin::prepare(std::int64_t begin, std::int64_t end, const PackedPoints& packed) {
  const PackLoops& loops = pack_loops(kernel_.isa);
  std::vector<double> row(static_cast<std::size_t>(padded(form_.d)));
  Scratch scratch;
  for (std::int64_t id = begin; id < end; ++id) {
    const RowTerms terms = loops.read(form_, points_, id, row.data());
    states_.start(id - states_.begin(), query_term(form_, terms), is_beyond(form_, terms));
    if (sketch_.count > 0) states_.expect(id - states_.begin(), id, sketch_.columns + id, sketch_.stride, scratch);
  }
  const auto copy = [&](const PackedPoints& from, AsPoints& to) {
    const PointsView view = from.view();
    const std::int64_t first = begin - from.base(), last = end - from.base(), place = begin - states_.begin();
    std::copy(view.low + first, view.low + last, to.low.data() + place);
    std::copy(view.error_own + first, view.error_own + last, to.own.data() + place);
  };
  copy(packed, whole_);
  if (look_ != nullptr) copy(*packed.contracted(), contracted_);
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
  packed_ = look_.open(join_.form_, join_.points_, begin, end);
  reverse_.set(join_.kernel_, packed_, join_.whole_.low.data() + begin_, join_.whole_.own.data() + begin_, count_);
  if (look_.form() == nullptr) return;
  const SelfJoin::AsPoints& contracted = join_.contracted_;
  look_.reverse().set(look_.kernel(), look_.queries(), contracted.low.data() + begin_, contracted.own.data() + begin_,
                      count_);
}

void JoinWorker::screen(const PackedPoints& points, bool looks, std::int64_t group_begin, std::int64_t group_end,
                        bool both) {
  RowStates& states = join_.states_;
  struct Keeper {
    RowStates& states;
    std::atomic_flag* locks;
    Scratch& scratch;
    std::int64_t queries;  // first query's place among the active rows
    std::int64_t points;   // first point's place among the active rows, or a number outside of their range
    std::int64_t begin;    // first active row
    std::int64_t count;    // queries; the last tile may have more, filled with zeros

    void keep(std::int64_t row, Survivor survivor) {
      const Locked lock(locks[row]);
      states.keep(row, survivor, false, scratch);
    }
  } keeper{states, join_.locks_.get(), scratch_, begin_, points.base() - states.begin(), states.begin(), count_};

  QueriesView queries = packed_.view();
  queries.threshold = states.thresholds() + begin_;
  Task task{.points = points.view(),
            .queries = queries,
            .reverse = both ? reverse_.view(states.thresholds() + keeper.points) : ReverseView{},
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
            .context = &keeper};
  look_.mark(looks ? points.contracted() : nullptr, task);
  join_.kernel_.screen(task);
}

}  // namespace tonari
