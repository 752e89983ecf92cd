# Makes the package that tests of a sanitized module import, from src/tonari and the module. A module that was built for
# the sources' folder does not replace it.
#
#   cmake -DFROM=src/tonari -DMODULE=build/asan/_native.so -DTO=build/asan/package/tonari -P native/package.cmake
file(REMOVE_RECURSE "${TO}")
cmake_path(GET TO PARENT_PATH parent)
file(COPY "${FROM}" DESTINATION "${parent}" PATTERN "_native*.so" EXCLUDE PATTERN "__pycache__" EXCLUDE)
file(COPY "${MODULE}" DESTINATION "${TO}/core")
