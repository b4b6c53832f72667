// A program of an old system: it loads libcuda.so.1 with dlopen(), and fills memory on the GPU.
// Prints `right`, or an error.
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;

enum { kNumbers = 1024, kValue = 20120 };

static void* library;

static void* find(const char* name) {
  void* found = dlsym(library, name);
  if (found != NULL) return found;
  printf("%s\n", dlerror());
  exit(1);
}

static void check(CUresult result, const char* what) {
  if (result == 0) return;
  printf("%s returned %d\n", what, result);
  exit(1);
}

int main(void) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  CUresult (*init)(unsigned) = (CUresult(*)(unsigned))find("cuInit");
  CUresult (*retain)(void**, int) = (CUresult(*)(void**, int))find("cuDevicePrimaryCtxRetain");
  CUresult (*current)(void*) = (CUresult(*)(void*))find("cuCtxSetCurrent");
  CUresult (*allocate)(CUdeviceptr*, size_t) =
      (CUresult(*)(CUdeviceptr*, size_t))find("cuMemAlloc_v2");
  CUresult (*fill)(CUdeviceptr, unsigned, size_t) =
      (CUresult(*)(CUdeviceptr, unsigned, size_t))find("cuMemsetD32_v2");
  CUresult (*copy)(void*, CUdeviceptr, size_t) =
      (CUresult(*)(void*, CUdeviceptr, size_t))find("cuMemcpyDtoH_v2");

  static unsigned numbers[kNumbers];
  void* context = NULL;
  CUdeviceptr memory = 0;
  check(init(0), "cuInit");
  check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(current(context), "cuCtxSetCurrent");
  check(allocate(&memory, sizeof numbers), "cuMemAlloc_v2");
  check(fill(memory, kValue, kNumbers), "cuMemsetD32_v2");
  check(copy(numbers, memory, sizeof numbers), "cuMemcpyDtoH_v2");
  for (int i = 0; i < kNumbers; ++i) {
    if (numbers[i] == kValue) continue;
    printf("number %d is %u\n", i, numbers[i]);
    return 1;
  }
  printf("right, with glibc %s\n", gnu_get_libc_version());
  return 0;
}
