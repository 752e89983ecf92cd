# Cross-compilation for aarch64 Linux with GCC: Debian's package g++-aarch64-linux-gnu. The Python that runs CMake is the
# host's; of its headers, only pyconfig.h differs between architectures, not for the stable ABI.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
