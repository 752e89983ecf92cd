// Every method of k-selection with counters, for every processor: the counts are the same on each processor, and its
// speed does not matter.
#include "select/methods.hpp"
#include "select/selects.hpp"

namespace tonari {

SelectRows select_rows_counted(SelectMethod method, ValueType type) { return method_for<true, true>(method, type); }

}  // namespace tonari
