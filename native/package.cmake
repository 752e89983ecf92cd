# Puts the package together that tests of a sanitized module import: src/tonari and the module, which another one that
# was built for the sources' folder does not replace.
#
#   cmake -DFROM=src/tonari -DMODULE=build/asan/_native.so -DTO=build/asan/package/tonari -P native/package.cmake
file(REMOVE_RECURSE "${TO}")
cmake_path(GET TO PARENT_PATH parent)
file(COPY "${FROM}" DESTINATION "${parent}" PATTERN "_native*.so" EXCLUDE PATTERN "__pycache__" EXCLUDE)
file(COPY "${MODULE}" DESTINATION "${TO}/core")
