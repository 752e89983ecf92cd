#include "exact/direct.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "exact/bounds.hpp"
#include "select/order.hpp"

namespace tonari {

namespace {

constexpr std::int64_t kBatch = 2048;  // values that are computed at a time
constexpr std::int64_t kBeyond = 64;   // points that a row may hold beyond k before it drops some

}  // namespace

template <class Value, class Index>
void search_directly(const DirectSearch& search, std::int64_t begin, std::int64_t end, Value* distances,
                     Index* indices) {
  const ExactValues compute = exact_values(search.isa);
  const bool double_output = sizeof(Value) == sizeof(double), descends = is_descending(search.metric);
  const std::int64_t n = search.points.n, k = search.k, batch = std::min(n, kBatch);
  const bool listed = search.listed != nullptr;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(batch));
  std::vector<double> values(static_cast<std::size_t>(batch));
  std::vector<Ranked> kept;
  kept.reserve(static_cast<std::size_t>(std::min(n, k + kBeyond)));
  for (std::int64_t i = begin; i < end; ++i) {
    const ExactQuery query = exact_query(search.metric, search.queries, i);
    const std::int64_t self = search.self_ids != nullptr ? search.self_ids[i] : -1;
    double worst = std::numeric_limits<double>::infinity();
    const std::int64_t stop = listed ? search.ends[i] : n;
    kept.clear();
    for (std::int64_t first = listed ? search.begins[i] : 0; first < stop; first += batch) {
      const std::int64_t count = std::min(batch, stop - first);
      if (!listed) std::iota(ids.begin(), ids.begin() + count, first);
      const std::int64_t* const numbers = listed ? search.listed + first : ids.data();
      compute(search.metric, query, search.points, numbers, count, values.data());
      for (std::int64_t j = 0; j < count; ++j) {
        const double value = returned_value(values[static_cast<std::size_t>(j)], double_output);
        const double key = descends ? -value : value;
        // Numbers ascend: among equal keys, the points that are held already come first.
        if ((key >= worst && std::ssize(kept) >= k) || numbers[j] == self) continue;
        kept.push_back({key, numbers[j]});
        if (std::ssize(kept) < k + kBeyond) continue;
        keep_smallest(kept, k);
        worst = std::max_element(kept.begin(), kept.end())->key;
      }
    }
    keep_smallest(kept, k);
    sort_ranked(kept);
    for (const Ranked& item : kept) {
      *distances++ = static_cast<Value>(descends ? -item.key : item.key) + Value{0};  // no negative zero
      *indices++ = static_cast<Index>(item.id);
    }
    constexpr Value nowhere = std::numeric_limits<Value>::infinity();
    for (std::int64_t j = std::ssize(kept); j < k; ++j) {
      *distances++ = descends ? -nowhere : nowhere;
      *indices++ = Index{-1};
    }
  }
}

template void search_directly(const DirectSearch&, std::int64_t, std::int64_t, float*, std::int32_t*);
template void search_directly(const DirectSearch&, std::int64_t, std::int64_t, float*, std::int64_t*);
template void search_directly(const DirectSearch&, std::int64_t, std::int64_t, double*, std::int32_t*);
template void search_directly(const DirectSearch&, std::int64_t, std::int64_t, double*, std::int64_t*);

}  // namespace tonari
