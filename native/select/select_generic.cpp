// Every method of k-selection for every processor: the registers of simd/vec.hpp are as wide as this file's flags allow.
#include "select/methods.hpp"
#include "select/selects.hpp"

namespace tonari {

SelectRows select_rows_generic(SelectMethod method, ValueType type) { return method_for(method, type); }

}  // namespace tonari
