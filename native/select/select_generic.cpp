// The methods of k-selection for every processor: this file's flags decide how wide the registers of simd/vec.hpp are.
#include "select/methods.hpp"
#include "select/selects.hpp"

namespace tonari {

SelectRows select_rows_generic(SelectMethod method, ValueType type) { return method_for<false, false>(method, type); }

}  // namespace tonari
