// What the tests of a driver share. They call a driver that is loaded by path (the simulated one
// from CTest), so the same programs can be run on a real one to see that both answer alike:
// memory_test /usr/lib/x86_64-linux-gnu/libcuda.so.1
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "cuda_abi.h"

inline void* loadedDriver = nullptr;
inline int failures = 0;

inline void* driverFunction(const char* name) {
  void* function = dlsym(loadedDriver, name);
  if (function == nullptr) {
    std::fprintf(stderr, "the driver has no function %s\n", name);
    std::exit(2);
  }
  return function;
}

/// DRIVER(cuInit)(0)
#define DRIVER(name) (reinterpret_cast<decltype(&::name)>(driverFunction(#name)))

inline std::string resultName(CUresult result) {
  const char* name = nullptr;
  DRIVER(cuGetErrorName)(result, &name);
  return name == nullptr ? std::to_string(static_cast<int>(result)) : name;
}

inline void checkResult(const char* file, int line, const char* call, CUresult got,
                        CUresult expected) {
  if (got == expected) return;
  ++failures;
  std::fprintf(stderr, "%s:%d: %s gave %s, expected %s\n", file, line, call,
               resultName(got).c_str(), resultName(expected).c_str());
}

inline void checkTrue(const char* file, int line, const char* condition, bool holds) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
}

#define EXPECT(expected, ...) checkResult(__FILE__, __LINE__, #__VA_ARGS__, __VA_ARGS__, expected)
#define OK(...) EXPECT(CUDA_SUCCESS, __VA_ARGS__)
#define TRUE(...) checkTrue(__FILE__, __LINE__, #__VA_ARGS__, __VA_ARGS__)

#if defined(__SANITIZE_THREAD__)
/// glibc frees the thread-local memory of a loaded library from whichever thread reuses the stack,
/// by locks that the sanitizer cannot see.
extern "C" __attribute__((visibility("default"), used)) inline const char*
__tsan_default_suppressions() {
  return "race:_dl_deallocate_tls\n";
}
#endif

/// Loads the driver that the command line names; exits with a sentence when that fails.
inline void openDriver(int count, char** arguments) {
  const char* path = count > 1 ? arguments[1] : "libcuda.so.1";
  loadedDriver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (loadedDriver == nullptr) {
    std::fprintf(stderr, "no driver to test: %s\n", dlerror());
    std::exit(2);
  }
}

/// Initialises it and makes the first device's primary context current.
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

/// The exit status of a test; prints how many checks failed.
inline int finished() {
  if (failures != 0) std::fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
