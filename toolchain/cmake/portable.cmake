# What runs in other people's containers and in the host's own file system: it may need no newer C
# library than glibc 2.17 (2012), and no C++ library at all. zig is clang with the headers and stubs
# of every glibc, and with a libc++ to link statically.
set(NVIDIA_VIRTUAL_ZIG "" CACHE FILEPATH
  "the zig that compiles; toolchain/src/portable-build.ts fetches it")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES NVIDIA_VIRTUAL_ZIG)
set(target -target x86_64-linux-gnu.2.17)
set(CMAKE_C_COMPILER ${NVIDIA_VIRTUAL_ZIG} cc ${target})
set(CMAKE_CXX_COMPILER ${NVIDIA_VIRTUAL_ZIG} c++ ${target})
