// The search through a tree, one function per instruction set.
#pragma once

#include "kdtree/search.hpp"

namespace tonari {

std::int64_t tree_search_generic(const TreeTask&, std::int64_t, std::int64_t, std::int64_t, TreeVisits&);
#if TONARI_X86
std::int64_t tree_search_avx2(const TreeTask&, std::int64_t, std::int64_t, std::int64_t, TreeVisits&);
std::int64_t tree_search_avx512(const TreeTask&, std::int64_t, std::int64_t, std::int64_t, TreeVisits&);
#endif

}  // namespace tonari
