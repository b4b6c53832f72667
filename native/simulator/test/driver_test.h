// What the tests of a driver share. They load a driver by path: CTest gives that of the simulated
// one. With the path of a real driver, the same programs show that both answer alike:
// simulator_memory_test /usr/lib/x86_64-linux-gnu/libcuda.so.1
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cuda_abi.h"
#include "test/unit/program.h"

/// The driver that the first argument names; ends the program with a sentence if it does not load.
inline void* loadedDriver() {
  static void* const driver = [] {
    void* opened = dlopen(unit::argument(0, "the path of a driver"), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      std::fprintf(stderr, "no driver to test: %s\n", dlerror());
      std::exit(2);
    }
    return opened;
  }();
  return driver;
}

template <class Function>
Function* driverFunction(const char* name) {
  void* function = dlsym(loadedDriver(), name);
  if (function == nullptr) {
    std::fprintf(stderr, "the driver has no function %s\n", name);
    std::exit(2);
  }
  return reinterpret_cast<Function*>(function);
}

/// DRIVER(cuInit)(0)
#define DRIVER(name) driverFunction<decltype(::name)>(#name)

inline std::string resultName(CUresult result) {
  const char* name = nullptr;
  DRIVER(cuGetErrorName)(result, &name);
  return name == nullptr ? std::to_string(static_cast<int>(result)) : name;
}

/// For doctest's messages.
inline doctest::String toString(CUresult result) { return resultName(result).c_str(); }

#define EXPECT(expected, ...) CHECK(__VA_ARGS__ == expected)
#define OK(...) EXPECT(CUDA_SUCCESS, __VA_ARGS__)

#if defined(__SANITIZE_THREAD__)
/// glibc frees the thread-local memory of a loaded library on the thread that reuses the stack,
/// with locks that the sanitizer cannot see.
extern "C" __attribute__((visibility("default"), used)) inline const char*
__tsan_default_suppressions() {
  return "race:_dl_deallocate_tls\n";
}
#endif

/// Initialises the driver and makes the first device's primary context current.
inline CUcontext usePrimaryContext() {
  CUcontext context = nullptr;
  OK(DRIVER(cuInit)(0));
  OK(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0));
  OK(DRIVER(cuCtxSetCurrent)(context));
  return context;
}

inline CUfunction functionOf(const char* ptx, const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(DRIVER(cuModuleLoadData)(&module, ptx));
  OK(DRIVER(cuModuleGetFunction)(&function, module, name));
  return function;
}
