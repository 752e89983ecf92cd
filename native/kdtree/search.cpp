#include "kdtree/search.hpp"

#include "core/rows.hpp"
#include "kdtree/searches.hpp"

namespace tonari {

TreeSearch tree_search(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return tree_search_avx512;
  if (isa >= Isa::avx2) return tree_search_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return tree_search_neon;
#endif
  (void)isa;
  return tree_search_generic;
}

TreeRounds::~TreeRounds() = default;

MakeTreeRounds tree_rounds(Isa isa) {
#if TONARI_X86
  if (isa >= Isa::avx512) return tree_rounds_avx512;
  if (isa >= Isa::avx2) return tree_rounds_avx2;
#elif TONARI_ARM64
  if (isa == Isa::neon) return tree_rounds_neon;
#endif
  (void)isa;
  return tree_rounds_generic;
}

namespace {

template <class T>
void first_leaves(const TreeView& tree, const RowsView& queries, std::int64_t begin, std::int64_t end,
                  std::int32_t* leaves) {
  const T* values = static_cast<const T*>(tree.split_values);
  const std::int64_t splits = (std::int64_t{1} << tree.height) - 1;
  std::vector<double> row(static_cast<std::size_t>(queries.d));
  for (std::int64_t i = begin; i < end; ++i) {
    load_row(queries, i, row.data());
    std::int64_t node = 0;
    while (node < splits) {
      const double value = row[static_cast<std::size_t>(tree.split_dimensions[node])];
      node = 2 * node + 1 + (value >= static_cast<double>(values[node]));
    }
    leaves[i] = static_cast<std::int32_t>(node - splits);
  }
}

}  // namespace

void first_leaves(const TreeView& tree, const RowsView& queries, std::int64_t begin, std::int64_t end,
                  std::int32_t* leaves) {
  return tree.double_rows ? first_leaves<double>(tree, queries, begin, end, leaves)
                          : first_leaves<float>(tree, queries, begin, end, leaves);
}

void order_by_leaf(const std::int32_t* leaves, std::int64_t m, std::int64_t count, std::int64_t* order) {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(count) + 1);
  for (std::int64_t i = 0; i < m; ++i) ++starts[static_cast<std::size_t>(leaves[i]) + 1];
  for (std::size_t leaf = 1; leaf < starts.size(); ++leaf) starts[leaf] += starts[leaf - 1];
  for (std::int64_t i = 0; i < m; ++i) order[starts[static_cast<std::size_t>(leaves[i])]++] = i;
}

}  // namespace tonari
