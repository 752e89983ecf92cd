#include "kdtree/radius.hpp"

#include <algorithm>
#include <type_traits>

namespace tonari {

TreeRadius::~TreeRadius() = default;

TreeEntries entries_in_tree(const TreeView& tree, std::int64_t n, const AllowedPairs& allowed) {
  TreeEntries made;
  made.others = allowed;
  const bool grouped = allowed.point_groups != nullptr;
  made.of_points.resize(static_cast<std::size_t>(n + kTreeWidth));
  const auto copy = [&](const auto* ids) {
    for (std::int64_t place = 0; place < n; ++place) {
      const std::int64_t id = allowed.ids != nullptr ? allowed.ids[ids[place]] : ids[place];
      made.of_points[static_cast<std::size_t>(place)] =
          grouped ? allowed.point_groups[id] : static_cast<std::int64_t>(is_in_mask(allowed.mask, allowed.packed, id));
    }
  };
  if (tree.wide_ids) copy(static_cast<const std::int64_t*>(tree.ids));
  else copy(static_cast<const std::int32_t*>(tree.ids));
  if (grouped) {
    made.of_queries = allowed.query_groups;
    made.same = allowed.same;
    made.others.query_groups = made.others.point_groups = nullptr;
  } else {
    made.others.mask = nullptr;
  }
  return made;
}

const TreeEntries& SharedEntries::of(const TreeView& tree, std::int64_t points, const AllowedPairs& allowed) {
  std::call_once(once_, [&] {
    entries_ = entries_in_tree(tree, points, allowed);
    made_.store(true, std::memory_order_release);
  });
  return entries_;
}

const std::vector<std::int32_t>& TreePlaces::of(const TreeView& tree, std::int64_t points) {
  std::call_once(once_, [&] {
    const auto* const ids = static_cast<const std::int32_t*>(tree.ids);
    places_.resize(static_cast<std::size_t>(points));
    for (std::int64_t place = 0; place < points; ++place) {
      places_[static_cast<std::size_t>(ids[place])] = static_cast<std::int32_t>(place);
    }
    made_.store(true, std::memory_order_release);
  });
  return places_;
}

MakeTreeRadius tree_radius(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return tree_radius_avx512;
  if (isa >= Isa::avx2) return tree_radius_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return tree_radius_neon;
#endif
  (void)isa;
  return tree_radius_generic;
}

void TreeRadius::append(std::span<const Ranked> list) {
  const auto add = [&](auto& to, auto Ranked::* part) {
    using Item = typename std::remove_reference_t<decltype(to)>::value_type;
    for (const Ranked& item : list) to.push_back(static_cast<Item>(item.*part));
  };
  if (task_.double_output) add(doubles_, &Ranked::key);
  else add(floats_, &Ranked::key);
  if (task_.tree->wide_ids) add(wide_ids_, &Ranked::id);
  else add(ids_, &Ranked::id);
}

template <class Value, class Index>
void TreeRadius::write(const std::int64_t* indptr, Value* distances, Index* indices) const {
  std::int64_t from = 0;
  const auto copy = [&](const auto& list, auto* to, std::int64_t count) { std::copy_n(list.data() + from, count, to); };
  for (std::int64_t place = begin_; place < next_; ++place) {
    const std::int64_t query = query_at(place), count = task_.counts[query], at = indptr[query];
    if constexpr (sizeof(Value) == sizeof(double)) copy(doubles_, distances + at, count);
    else copy(floats_, distances + at, count);
    if constexpr (sizeof(Index) == sizeof(std::int64_t)) copy(wide_ids_, indices + at, count);
    else copy(ids_, indices + at, count);
    from += count;
  }
}

template void TreeRadius::write(const std::int64_t*, float*, std::int32_t*) const;
template void TreeRadius::write(const std::int64_t*, float*, std::int64_t*) const;
template void TreeRadius::write(const std::int64_t*, double*, std::int32_t*) const;
template void TreeRadius::write(const std::int64_t*, double*, std::int64_t*) const;

}  // namespace tonari
