// Modules and libraries from PTX text.
#include <cstring>
#include <vector>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

TEST_CASE("functions and variables of a module are found by name") {
  usePrimaryContext();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr counter = 0;
  std::size_t size = 0;
  unsigned count = 0, value = 0;
  OK(DRIVER(cuModuleLoadData)(&module, kKernels));
  EXPECT(CUDA_ERROR_NOT_FOUND, DRIVER(cuModuleGetFunction)(&function, module, "absent"));
  EXPECT(CUDA_ERROR_NOT_FOUND, DRIVER(cuModuleGetGlobal_v2)(&counter, &size, module, "absent"));
  OK(DRIVER(cuModuleGetGlobal_v2)(&counter, &size, module, "counter"));
  CHECK(size == 4);
  OK(DRIVER(cuMemcpyDtoH_v2)(&value, counter, 4));
  CHECK(value == 7);
  OK(DRIVER(cuModuleGetGlobal_v2)(&counter, nullptr, module, "table"));
  OK(DRIVER(cuModuleGetFunctionCount)(&count, module));
  CHECK(count == 4);
  std::vector<CUfunction> functions(count);
  OK(DRIVER(cuModuleEnumerateFunctions)(functions.data(), count, module));
  for (const CUfunction each : functions) {
    CUmodule owner = nullptr;
    OK(DRIVER(cuFuncGetModule)(&owner, each));
    CHECK(owner == module);
  }
  OK(DRIVER(cuModuleUnload)(module));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuModuleLoadData)(&module, nullptr));
  EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuModuleUnload)(nullptr));
  EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuModuleGetFunction)(&function, nullptr, "add"));
  EXPECT(CUDA_ERROR_FILE_NOT_FOUND, DRIVER(cuModuleLoad)(&module, "/nowhere/at/all"));
}

TEST_CASE("the log names why a text does not compile") {
  usePrimaryContext();
  const char* wrong =
      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry f()\n{\n  nonsense.u32 "
      "%r1;\n}\n";
  char log[512] = {};
  CUmodule module = nullptr;
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  EXPECT(CUDA_ERROR_INVALID_PTX, DRIVER(cuModuleLoadDataEx)(&module, wrong, 2, options, values));
  CHECK(std::strstr(log, "nonsense") != nullptr);
  CHECK(std::strstr(log, "line 6") != nullptr);
  EXPECT(CUDA_ERROR_INVALID_PTX, DRIVER(cuModuleLoadData)(&module, wrong));
  EXPECT(CUDA_ERROR_INVALID_IMAGE, DRIVER(cuModuleLoadData)(&module, "this is no program"));
  EXPECT(CUDA_ERROR_INVALID_IMAGE, DRIVER(cuModuleLoadData)(&module, ""));
}

void appendMessage(void* text, CUlogLevel, char* message, std::size_t length) {
  static_cast<std::string*>(text)->append(message, length);
}

TEST_CASE("a callback is told why a library does not compile") {
  usePrimaryContext();
  const char* wrong =
      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry f()\n{\n  nonsense.u32 "
      "%r1;\n}\n";
  std::string logged;
  CUlogsCallbackHandle handle = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  OK(DRIVER(cuLogsRegisterCallback)(appendMessage, &logged, &handle));
  OK(DRIVER(cuLibraryLoadData)(&library, wrong, nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT(CUDA_ERROR_INVALID_PTX, DRIVER(cuLibraryGetKernel)(&kernel, library, "f"));
  OK(DRIVER(cuLogsUnregisterCallback)(handle));
  CHECK(!logged.empty());
  OK(DRIVER(cuLibraryUnload)(library));
}

TEST_CASE("a library whose variables do not fit has no module, and is unloaded") {
  usePrimaryContext();
  constexpr const char* kTooLarge =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .global .align 8 .b8 large[35184372088832];\n";
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  OK(DRIVER(cuLibraryLoadData)(&library, kTooLarge, nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT(CUDA_ERROR_OUT_OF_MEMORY, DRIVER(cuLibraryGetModule)(&module, library));
  OK(DRIVER(cuLibraryUnload)(library));
}

TEST_CASE("a library serves all contexts") {
  const CUcontext context = usePrimaryContext();
  CUlibrary library = nullptr, owner = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUmodule module = nullptr;
  unsigned count = 0;
  OK(DRIVER(cuCtxSetCurrent)(nullptr));
  OK(DRIVER(cuLibraryLoadData)(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(DRIVER(cuLibraryGetKernelCount)(&count, library));
  CHECK(count == 4);
  OK(DRIVER(cuLibraryGetKernel)(&kernel, library, "store"));
  EXPECT(CUDA_ERROR_NOT_FOUND, DRIVER(cuLibraryGetKernel)(&kernel, library, "absent"));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuKernelGetFunction)(&function, kernel));
  OK(DRIVER(cuCtxSetCurrent)(context));
  OK(DRIVER(cuKernelGetLibrary)(&owner, kernel));
  CHECK(owner == library);
  const char* name = nullptr;
  OK(DRIVER(cuKernelGetName)(&name, kernel));
  CHECK(std::strcmp(name, "store") == 0);
  std::size_t offset = 0, size = 0;
  OK(DRIVER(cuKernelGetParamInfo)(kernel, 1, &offset, &size));
  CHECK(offset == 8);
  CHECK(size == 4);
  int value = 0;
  OK(DRIVER(cuKernelSetAttribute)(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel,
                                  0));
  OK(DRIVER(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel,
                                  0));
  CHECK(value == 100000);
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuKernelSetAttribute)(CU_FUNC_ATTRIBUTE_NUM_REGS, 8, kernel, 0));

  CUdeviceptr counter = 0;
  OK(DRIVER(cuLibraryGetGlobal)(&counter, &size, library, "counter"));
  unsigned stored = 123, seen = 0;
  void* parameters[] = {&counter, &stored};
  OK(DRIVER(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 100000, nullptr,
                            parameters, nullptr));
  OK(DRIVER(cuMemcpyDtoH_v2)(&seen, counter, 4));
  CHECK(seen == 123);
  OK(DRIVER(cuKernelGetFunction)(&function, kernel));
  OK(DRIVER(cuLibraryGetModule)(&module, library));
  CUfunction same = nullptr;
  OK(DRIVER(cuModuleGetFunction)(&same, module, "store"));
  CHECK(same == function);
  EXPECT(CUDA_ERROR_NOT_PERMITTED, DRIVER(cuModuleUnload)(module));
  OK(DRIVER(cuLibraryUnload)(library));
  OK(DRIVER(cuLibraryLoadData)(&library, "this is no program", nullptr, nullptr, 0, nullptr,
                               nullptr, 0));
  EXPECT(CUDA_ERROR_INVALID_IMAGE, DRIVER(cuLibraryGetKernel)(&kernel, library, "store"));
  OK(DRIVER(cuLibraryUnload)(library));
}

}  // namespace
