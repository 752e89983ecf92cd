// Both traversals of a tree, one function per instruction set.
#pragma once

#include "kdtree/buffered.hpp"

namespace tonari {

std::int64_t tree_search_generic(const TreeTask&, std::int64_t, std::int64_t, std::int64_t, TreeVisits&);
std::unique_ptr<TreeRounds> tree_rounds_generic(const TreeTask&, std::int64_t, std::int64_t, std::int64_t);
#if TONARI_X86
std::int64_t tree_search_avx2(const TreeTask&, std::int64_t, std::int64_t, std::int64_t, TreeVisits&);
std::int64_t tree_search_avx512(const TreeTask&, std::int64_t, std::int64_t, std::int64_t, TreeVisits&);
std::unique_ptr<TreeRounds> tree_rounds_avx2(const TreeTask&, std::int64_t, std::int64_t, std::int64_t);
std::unique_ptr<TreeRounds> tree_rounds_avx512(const TreeTask&, std::int64_t, std::int64_t, std::int64_t);
#elif TONARI_ARM64
std::int64_t tree_search_neon(const TreeTask&, std::int64_t, std::int64_t, std::int64_t, TreeVisits&);
std::unique_ptr<TreeRounds> tree_rounds_neon(const TreeTask&, std::int64_t, std::int64_t, std::int64_t);
#endif

}  // namespace tonari
