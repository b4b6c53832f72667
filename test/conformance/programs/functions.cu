// Functions of modules and kernels of libraries: lists, names, owners, parameters, attributes, and code from files.
// conformance: flags=-lcuda judges=itself
#include <unistd.h>

#include <cstring>

#include "by_name.h"

static void runFill(CUfunction function, unsigned value) {
  CUdeviceptr out = 0;
  EXPECT_OK(cuMemAlloc(&out, sizeof value));
  void* parameters[] = {&out, &value};
  EXPECT_OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT(valueAt(out) == value);
  EXPECT_OK(cuMemFree(out));
}

static void inspect(CUmodule module, CUfunction function) {
  const char* name = nullptr;
  EXPECT_OK(cuFuncGetName(&name, function));
  EXPECT(name != nullptr && std::strcmp(name, "fill") == 0);
  CUmodule owner = nullptr;
  EXPECT_OK(cuFuncGetModule(&owner, function));
  EXPECT(owner == module);
  std::size_t offset = 0, size = 0;
  EXPECT_OK(cuFuncGetParamInfo(function, 1, &offset, &size));
  EXPECT(offset == 8 && size == 4);
  EXPECT(cuFuncGetParamInfo(function, 2, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuFuncLoad(function));
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  EXPECT_OK(cuFuncIsLoaded(&state, function));
  EXPECT(state == CU_FUNCTION_LOADING_STATE_LOADED);
}

static void settings(CUfunction function) {
  int most = 0;
  EXPECT_OK(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  EXPECT(most == 1024);
  EXPECT_OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096));
  int bytes = 0;
  EXPECT_OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
  EXPECT(bytes == 4096);
  EXPECT_OK(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_L1));
  EXPECT_OK(cuFuncSetSharedMemConfig(function, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
  EXPECT(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1) == CUDA_ERROR_INVALID_VALUE);
}

static void modules() {
  CUmodule module = nullptr;
  EXPECT_OK(cuModuleLoadDataEx(&module, kTwoKernels, 0, nullptr, nullptr));
  unsigned count = 0;
  EXPECT_OK(cuModuleGetFunctionCount(&count, module));
  EXPECT(count == 2);
  CUfunction listed[2] = {}, fill = nullptr;
  EXPECT_OK(cuModuleEnumerateFunctions(listed, 2, module));
  EXPECT_OK(cuModuleGetFunction(&fill, module, "fill"));
  EXPECT(listed[0] == fill || listed[1] == fill);
  inspect(module, fill);
  settings(fill);
  runFill(fill, 7);
  EXPECT_OK(cuModuleUnload(module));
}

static void writeFile(const char* path) {
  std::FILE* file = std::fopen(path, "w");
  EXPECT(std::fputs(kTwoKernels, file) >= 0);
  std::fclose(file);
}

static void files() {
  const char* path = "two_kernels.ptx";
  writeFile(path);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_OK(cuModuleLoad(&module, path));
  EXPECT_OK(cuModuleGetFunction(&function, module, "fill"));
  runFill(function, 8);
  EXPECT_OK(cuModuleUnload(module));
  EXPECT(cuModuleLoad(&module, "no_such_file") == CUDA_ERROR_FILE_NOT_FOUND);
  CUlibrary library = nullptr, owner = nullptr;
  CUkernel kernel = nullptr;
  EXPECT_OK(cuLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT_OK(cuLibraryGetKernel(&kernel, library, "fill"));
  EXPECT_OK(cuKernelGetLibrary(&owner, kernel));
  EXPECT(owner == library);
  EXPECT_OK(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_SHARED, 0));
  runFill(reinterpret_cast<CUfunction>(kernel), 9);
  EXPECT_OK(cuLibraryUnload(library));
  unlink(path);
}

static void occupancy() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_OK(cuModuleLoadData(&module, kTwoKernels));
  EXPECT_OK(cuModuleGetFunction(&function, module, "add"));
  int blocks = 0, grid = 0, block = 0;
  EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 1024, 0));
  EXPECT(blocks == 1 || blocks == 2);
  EXPECT_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 256));
  EXPECT(block == 256 && grid > 0);
  int again = 0;
  EXPECT_OK(cuOccupancyMaxPotentialBlockSizeWithFlags(&again, &block, function, nullptr, 0, 256, 0));
  EXPECT(again == grid);
  std::size_t bytes = 0;
  EXPECT_OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 1, 256));
  EXPECT(bytes > 0);
  EXPECT_OK(cuModuleUnload(module));
}

int main() {
  startDriver();
  modules();
  files();
  occupancy();
  return verdict();
}
