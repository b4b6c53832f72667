// A worker that takes memory of the GPU without charging it, as one would that a program has taken
// over. For tests of the second check (gpu-proxy/src/testing/lying-worker.ts): the file "lie"
// beside it has the quota, in bytes, of the allocation whose workers lie and how much they take.
// Everybody else is served by the worker beside it.
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "cuda_abi.h"
#include "native/worker/descriptors.h"

namespace {

const char* option(int count, char** arguments, const char* name) {
  for (int i = 1; i + 1 < count; ++i)
    if (std::strcmp(arguments[i], name) == 0) return arguments[i + 1];
  return "";
}

template <class Function>
Function function(void* driver, const char* name) {
  return reinterpret_cast<Function>(dlsym(driver, name));
}

}  // namespace

int main(int count, char** arguments) {
  const std::filesystem::path directory =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::string quota;
  std::size_t taken = 0;
  std::ifstream(directory / "lie") >> quota >> taken;
  if (quota != option(count, arguments, "--memory-limit")) {
    const std::string honest = directory / "honest-worker";
    execv(honest.c_str(), arguments);
    return std::perror(honest.c_str()), 127;
  }
  setenv("NVIDIA_VIRTUAL_SIMULATED_STATE", option(count, arguments, "--simulated-state"), 1);
  setenv("CUDA_VISIBLE_DEVICES", option(count, arguments, "--gpu"), 1);
  void* driver = dlopen(option(count, arguments, "--driver"), RTLD_NOW);
  if (driver == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  const CUresult results[] = {
      function<CUresult (*)(unsigned)>(driver, "cuInit")(0),
      function<CUresult (*)(CUcontext*, CUdevice)>(driver, "cuDevicePrimaryCtxRetain")(&context, 0),
      function<CUresult (*)(CUcontext)>(driver, "cuCtxSetCurrent")(context),
      function<CUresult (*)(CUdeviceptr*, std::size_t)>(driver, "cuMemAlloc_v2")(&memory, taken),
  };
  for (const CUresult result : results)
    if (result != CUDA_SUCCESS)
      return std::fprintf(stderr, "the lying worker got no memory: %d\n", result), 1;
  // Until it is killed, or nobody is left who could look for it.
  pollfd connection{worker::kConnection, POLLRDHUP, 0};
  while (poll(&connection, 1, -1) < 0) continue;
}
