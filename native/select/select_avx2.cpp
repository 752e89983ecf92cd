#include "select/methods.hpp"
#include "select/selects.hpp"

namespace tonari {

SelectRows select_rows_avx2(SelectMethod method, ValueType type) { return method_for(method, type); }

}  // namespace tonari
