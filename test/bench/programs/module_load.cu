// Loading and unloading a module of twenty kernels, given as a cubin file.
#include <cuda.h>

#include <fstream>
#include <iterator>

#include "measure.h"

static void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) check(cudaErrorUnknown, what);
}

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "", std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
  if (image.empty()) check(cudaErrorFileNotFound, "usage: module_load FILE.cubin");
  CHECK(cudaFree(nullptr));
  const auto load = driverFunction<decltype(&cuModuleLoadData)>("cuModuleLoadData", 2000);
  const auto find = driverFunction<decltype(&cuModuleGetFunction)>("cuModuleGetFunction", 2000);
  const auto unload = driverFunction<decltype(&cuModuleUnload)>("cuModuleUnload", 2000);
  const double time = median(300, [&] {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CHECK(load(&module, image.data()));
    CHECK(find(&function, module, "kernel7"));
    CHECK(unload(module));
  });
  report("module load, find, unload", time * 1e6, "us");

  // Its parts, one after the other.
  constexpr int kModules = 30;
  std::vector<CUmodule> modules(kModules);
  std::vector<CUfunction> functions(kModules);
  const auto part = [&](const char* name, auto call) {
    const double start = seconds();
    for (int i = 0; i < kModules; ++i) CHECK(call(i));
    report(name, (seconds() - start) / kModules * 1e6, "us");
  };
  part("module load", [&](int i) { return load(&modules[i], image.data()); });
  part("module find", [&](int i) { return find(&functions[i], modules[i], "kernel7"); });
  part("module unload", [&](int i) { return unload(modules[i]); });
  const auto freeMemory = driverFunction<decltype(&cuMemGetInfo)>("cuMemGetInfo", 3020);
  std::size_t free = 0, total = 0;
  CHECK(freeMemory(&free, &total));  // waits for the last unload
  part("query of free memory", [&](int) { return freeMemory(&free, &total); });
}
