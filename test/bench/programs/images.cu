// Loads code images, one after the other, and prints the GPU memory in use.
//   module FILE | library FILE  loads it and uses every kernel in it without a launch; prints the
//                               result and the bytes in use
//   unload                      unloads the last one; prints the same
#include <cuda.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "measure.h"

#define DRIVER(name, version) const auto name##_ = driverFunction<decltype(&name)>(#name, version)

int main() {
  CHECK(cudaFree(nullptr));
  DRIVER(cuModuleLoadData, 2000);
  DRIVER(cuModuleUnload, 2000);
  DRIVER(cuModuleGetFunctionCount, 12040);
  DRIVER(cuModuleEnumerateFunctions, 12040);
  DRIVER(cuFuncGetAttribute, 2020);
  DRIVER(cuLibraryLoadData, 12000);
  DRIVER(cuLibraryUnload, 12000);
  DRIVER(cuLibraryGetModule, 12000);
  CUmodule loaded = nullptr;
  CUlibrary library = nullptr;
  const auto useAll = [&](CUmodule of) {
    unsigned count = 0;
    if (const CUresult status = cuModuleGetFunctionCount_(&count, of);
        status != CUDA_SUCCESS || count == 0)
      return status;
    std::vector<CUfunction> functions(count);
    if (const CUresult status = cuModuleEnumerateFunctions_(functions.data(), count, of);
        status != CUDA_SUCCESS)
      return status;
    int value = 0;
    for (CUfunction function : functions) {
      if (const CUresult status = cuFuncGetAttribute_(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
          status != CUDA_SUCCESS)
        return status;
    }
    return CUDA_SUCCESS;
  };
  const auto answer = [](CUresult status) {
    std::size_t free = 0, total = 0;
    const cudaError_t known = cudaMemGetInfo(&free, &total);
    std::printf("{\"status\": %d, \"used\": %zu, \"lives\": %s}\n", static_cast<int>(status),
                total - free, known == cudaSuccess ? "true" : "false");
    std::fflush(stdout);
  };
  answer(CUDA_SUCCESS);
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "unload") {
      if (loaded != nullptr) cuModuleUnload_(loaded);
      if (library != nullptr) cuLibraryUnload_(library);
      loaded = nullptr;
      library = nullptr;
      answer(CUDA_SUCCESS);
      continue;
    }
    const bool asLibrary = line.starts_with("library ");
    std::ifstream file(line.substr(line.find(' ') + 1), std::ios::binary);
    std::string image{std::istreambuf_iterator<char>(file), {}};
    image.append(64, '\0');
    CUresult status = CUDA_SUCCESS;
    CUmodule used = nullptr;
    if (asLibrary) {
      status = cuLibraryLoadData_(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
      if (status != CUDA_SUCCESS) library = nullptr;
      if (status == CUDA_SUCCESS) status = cuLibraryGetModule_(&used, library);
    } else {
      status = cuModuleLoadData_(&loaded, image.data());
      used = loaded = status == CUDA_SUCCESS ? loaded : nullptr;
    }
    if (status == CUDA_SUCCESS) status = useAll(used);
    answer(status);
  }
}
