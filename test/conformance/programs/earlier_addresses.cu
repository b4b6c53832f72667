// Calls of CUDA 2 take addresses of 32 bits, which no memory of a GPU has today: what the driver answers to each.
// conformance: flags=-lcuda judges=itself
#include "by_name.h"

#define REFUSED(...) refused(byName(__VA_ARGS__), #__VA_ARGS__, __LINE__)

static void refused(CUresult result, const char* call, int line) {
  std::printf("%s: %s\n", call, resultName(result));
  expect(result != CUDA_SUCCESS, call, line);
}

static char host[64];
static unsigned address, bytes, pitch;
static CUarray array;

static void memory() {
  REFUSED("cuMemGetInfo", &bytes, &pitch);
  REFUSED("cuMemAlloc", &address, 64u);
  REFUSED("cuMemAllocPitch", &address, &pitch, 64u, 2u, 4u);
  REFUSED("cuMemFree", 0x1000u);
  REFUSED("cuMemGetAddressRange", &address, &bytes, 0x1000u);
  REFUSED("cuMemHostGetDevicePointer", &address, static_cast<void*>(host), 0u);
  REFUSED("cuMemcpyHtoD", 0x1000u, static_cast<const void*>(host), 4u);
  REFUSED("cuMemcpyDtoH", static_cast<void*>(host), 0x1000u, 4u);
  REFUSED("cuMemcpyDtoD", 0x1000u, 0x2000u, 4u);
  REFUSED("cuMemsetD8", 0x1000u, static_cast<unsigned char>(1), 4u);
  REFUSED("cuMemsetD16", 0x1000u, static_cast<unsigned short>(1), 4u);
  REFUSED("cuMemsetD32", 0x1000u, 1u, 4u);
}

static void moduleAndArrays() {
  CUmodule module = nullptr;
  const unsigned descriptor[4] = {16, 1, CU_AD_FORMAT_FLOAT, 1};
  EXPECT_OK(cuModuleLoadData(&module, kTwoKernels));
  REFUSED("cuModuleGetGlobal", &address, &bytes, module, "nothing");
  REFUSED("cuArrayCreate", &array, descriptor);
  EXPECT_OK(cuModuleUnload(module));
}

static void textureReferences() {
  CUtexref reference = nullptr;
  CUdeviceptr memory = 0, bound = 0;
  const unsigned descriptor[4] = {16, 1, CU_AD_FORMAT_FLOAT, 1};
  EXPECT_OK(cuMemAlloc(&memory, 4096));
  EXPECT_OK(cuTexRefCreate(&reference));
  EXPECT_OK(cuTexRefSetFormat(reference, CU_AD_FORMAT_FLOAT, 1));
  EXPECT_OK(byName("cuTexRefSetAddress_v2", static_cast<std::size_t*>(nullptr), reference, memory, std::size_t{64}));
  REFUSED("cuTexRefSetAddress", &bytes, reference, 0x1000u, 64u);
  REFUSED("cuTexRefSetAddress2D", reference, descriptor, 0x1000u, 64u);
  REFUSED("cuTexRefGetAddress", &address, reference);
  EXPECT_OK(byName("cuTexRefGetAddress_v2", &bound, reference));
  EXPECT(bound == memory);  // nothing has changed it
  EXPECT_OK(cuTexRefDestroy(reference));
  EXPECT_OK(cuMemFree(memory));
}

int main() {
  startDriver();
  memory();
  moduleAndArrays();
  textureReferences();
  return verdict();
}
