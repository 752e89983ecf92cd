// Every method of k-selection with counters, for every processor: what is counted is the same on each, and nobody times it.
#include "select/methods.hpp"
#include "select/selects.hpp"

namespace tonari {

SelectRows select_rows_counted(SelectMethod method, ValueType type) { return method_for<true, true>(method, type); }

}  // namespace tonari
