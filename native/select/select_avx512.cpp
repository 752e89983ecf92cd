// The methods of k-selection for AVX-512: this file's flags decide how wide the registers of simd/vec.hpp are.
#include "select/methods.hpp"
#include "select/selects.hpp"

namespace tonari {

SelectRows select_rows_avx512(SelectMethod method, ValueType type) { return method_for<false, false>(method, type); }

}  // namespace tonari
