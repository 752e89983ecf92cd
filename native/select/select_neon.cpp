// Every method of k-selection for NEON.
#include "select/methods.hpp"
#include "select/selects.hpp"

namespace tonari {

SelectRows select_rows_neon(SelectMethod method, ValueType type) { return method_for<false, true>(method, type); }

}  // namespace tonari
