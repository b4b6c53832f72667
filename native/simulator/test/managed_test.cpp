// Managed memory and managed variables, used by host and device at one address.
#include <string>

#include "native/simulator/test/driver_test.h"

namespace {

const std::string kText =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .attribute(.managed) .align 4 .u32 number = 41;\n"
    ".visible .global .align 4 .u32 plain = 1;\n"
    ".visible .entry next(.param .u64 at) {\n .reg .b32 %r;\n .reg .b64 %a;\n"
    " ld.param.u64 %a, [at];\n ld.global.u32 %r, [number];\n add.u32 %r, %r, 1;\n"
    " st.global.u32 [number], %r;\n st.global.u32 [%a], %r;\n ret;\n}\n";

void launch(CUfunction next, CUdeviceptr at) {
  void* parameters[] = {&at};
  OK(DRIVER(cuLaunchKernel)(next, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  OK(DRIVER(cuCtxSynchronize)());
}

bool isManaged(CUdeviceptr at) {
  unsigned managed = 0;
  OK(DRIVER(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at));
  return managed != 0;
}

TEST_CASE("a managed variable of a library needs no context, and lives in all") {
  usePrimaryContext();
  CUcontext own = nullptr, other = nullptr;
  OK(DRIVER(cuCtxGetCurrent)(&own));
  OK(DRIVER(cuCtxSetCurrent)(nullptr));
  CUlibrary library = nullptr;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  OK(DRIVER(cuLibraryLoadData)(&library, kText.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(DRIVER(cuLibraryGetManaged)(&address, &bytes, library, "number"));
  CHECK(bytes == 4);
  EXPECT(CUDA_ERROR_NOT_FOUND, DRIVER(cuLibraryGetManaged)(&address, &bytes, library, "plain"));
  auto* number = reinterpret_cast<volatile unsigned*>(address);
  CHECK(*number == 41);
  CUkernel next = nullptr;
  OK(DRIVER(cuLibraryGetKernel)(&next, library, "next"));
  OK(DRIVER(cuCtxSetCurrent)(own));
  CHECK(isManaged(address));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFree_v2)(address));
  launch(reinterpret_cast<CUfunction>(next), address);
  CHECK(*number == 42);
  OK(DRIVER(cuCtxCreate_v2)(&other, 0, 0));
  launch(reinterpret_cast<CUfunction>(next), address);
  CHECK(*number == 43);
  OK(DRIVER(cuCtxDestroy_v2)(other));
  CHECK(*number == 43);
  OK(DRIVER(cuCtxSetCurrent)(own));
  OK(DRIVER(cuLibraryUnload)(library));
  int value = 0;
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuMemRangeGetAttribute)(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                        address, 4));
}

TEST_CASE("a managed variable of a module ends with it") {
  usePrimaryContext();
  CUmodule module = nullptr;
  CUfunction next = nullptr;
  CUdeviceptr address = 0, memory = 0;
  std::size_t bytes = 0;
  OK(DRIVER(cuModuleLoadData)(&module, kText.c_str()));
  OK(DRIVER(cuModuleGetFunction)(&next, module, "next"));
  OK(DRIVER(cuModuleGetGlobal_v2)(&address, &bytes, module, "number"));
  CHECK(isManaged(address));
  OK(DRIVER(cuMemAllocManaged)(&memory, 64, CU_MEM_ATTACH_GLOBAL));
  *reinterpret_cast<volatile unsigned*>(address) = 99;
  launch(next, memory);
  CHECK(*reinterpret_cast<volatile unsigned*>(memory) == 100);
  CHECK(isManaged(memory));
  OK(DRIVER(cuMemFree_v2)(memory));
  OK(DRIVER(cuModuleUnload)(module));
  unsigned managed = 0;
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
}

TEST_CASE("streams neither write words of managed memory and pools nor wait for them") {
  usePrimaryContext();
  CUdeviceptr memory = 0, pooled = 0;
  OK(DRIVER(cuMemAllocManaged)(&memory, 64, CU_MEM_ATTACH_GLOBAL));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuStreamWriteValue32_v2)(nullptr, memory, 1, 0));
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuStreamWaitValue64_v2)(nullptr, memory + 8, 0, CU_STREAM_WAIT_VALUE_GEQ));
  OK(DRIVER(cuMemAllocAsync)(&pooled, 64, nullptr));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuStreamWriteValue32_v2)(nullptr, pooled, 1, 0));
  OK(DRIVER(cuMemFreeAsync)(pooled, nullptr));
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(*reinterpret_cast<volatile unsigned*>(memory) == 0);
  OK(DRIVER(cuMemFree_v2)(memory));
}

TEST_CASE("memory that is not mapped, or not writable, is not registered") {
  usePrimaryContext();
  static unsigned variable = 1;
  static const unsigned constant[2000] = {1};
  void* const fixed = const_cast<unsigned*>(constant);
  OK(DRIVER(cuMemHostRegister_v2)(&variable, sizeof variable, 0));
  OK(DRIVER(cuMemHostUnregister)(&variable));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemHostRegister_v2)(fixed, sizeof constant, 0));
  int supported = 0;
  OK(DRIVER(cuDeviceGetAttribute)(&supported, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
                                  0));
  if (supported == 0) return;
  OK(DRIVER(cuMemHostRegister_v2)(fixed, sizeof constant, CU_MEMHOSTREGISTER_READ_ONLY));
  OK(DRIVER(cuMemHostUnregister)(fixed));
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuMemHostRegister_v2)(reinterpret_cast<void*>(0x5300'0000'0000), 4096, 0));
}

}  // namespace
