// Every method of k-selection for AVX2: this file's flags decide how wide the registers of simd/vec.hpp are.
#include "select/methods.hpp"
#include "select/selects.hpp"

namespace tonari {

SelectRows select_rows_avx2(SelectMethod method, ValueType type) { return method_for<false, true>(method, type); }

}  // namespace tonari
