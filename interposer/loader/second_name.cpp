// A library with the SONAME libcuda.so that only needs libcuda.so.1. If both are preloaded, a
// program that loads either name gets ours, whatever its search path has.
