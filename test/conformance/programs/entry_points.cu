// cuGetProcAddress: by name, version and flags, and what it says about what is not there.
// conformance: flags=-lcuda
#include "show_driver.h"

static void* ask(const char* name, int version, cuuint64_t flags) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = static_cast<CUdriverProcAddressQueryResult>(9);
  const CUresult result = cuGetProcAddress(name, &function, version, flags, &status);
  std::printf("%s, %d, flags %d: %s, status %d, found %s\n", name, version, int(flags), resultName(result), status,
              yesNo(function != nullptr));
  return function;
}

int main() {
  ask("cuInit", 2000, 0);
  ask("cuInit", 13000, 0);
  ask("cuInit", 1000, 0);
  ask("cuNoSuchCall", 13000, 0);
  ask("cuInit", 99000, 0);
  ask("cuMemAlloc", 3020, 0);
  ask("cuGetProcAddress", 11030, 0);
  ask("cuGetProcAddress", 12000, 0);
  void* legacy = ask("cuMemcpyHtoDAsync", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  void* perThread = ask("cuMemcpyHtoDAsync", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  void* neither = ask("cuMemcpyHtoDAsync", 13000, CU_GET_PROC_ADDRESS_DEFAULT);
  std::printf("legacy is the default: %s, per thread is another: %s\n", yesNo(legacy == neither), yesNo(legacy != perThread));
  void* oldDevice = ask("cuCtxGetDevice", 2000, 0);
  void* newDevice = ask("cuCtxGetDevice", 13000, 0);
  std::printf("two versions: %s\n", yesNo(oldDevice != newDevice));
  ask("cuLaunchKernel", 4000, 0);
  ask("cuLaunchKernel", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  ask("cuLaunchKernelEx", 11000, 0);
  ask("cuLaunchKernelEx", 11060, 0);
  ask("cuLibraryLoadData", 12000, 0);
  int version = 0;
  void* function = ask("cuDriverGetVersion", 2020, 0);
  SHOW(reinterpret_cast<CUresult (*)(int*)>(function)(&version));
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  SHOW(cudaGetDriverEntryPointByVersion("cuMemFree", &function, 12000, cudaEnableDefault, &status));
  std::printf("status %d, found %s\n", status, yesNo(function != nullptr));
  SHOW(cudaGetDriverEntryPointByVersion("cuUnheardOf", &function, 12000, cudaEnableDefault, &status));
  std::printf("status %d, found %s\n", status, yesNo(function != nullptr));
  const char* text = nullptr;
  SHOW(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  std::printf("has a text: %s\n", yesNo(text != nullptr && *text != 0));
  SHOW(cuGetErrorName(static_cast<CUresult>(123456), &text));
  std::printf("null: %s\n", yesNo(text == nullptr));
}
