// Attributes and parameters of kernels, by CUfunction (of one context) and by CUkernel (of a
// library, for one device).
#include <algorithm>

#include "native/simulator/attributes.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"
#include "native/simulator/library.h"
#include "native/simulator/machine.h"
#include "native/simulator/module.h"
#include "native/simulator/occupancy.h"

namespace simulator {

std::optional<int> compiledAttribute(const KernelInfo& info, int ptxVersion, int attribute) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return static_cast<int>(threadLimit(info));
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return static_cast<int>(info.staticSharedBytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return static_cast<int>(info.constantBytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return static_cast<int>(info.localBytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return static_cast<int>(registersOf(info));
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: return ptxVersion;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return static_cast<int>(computeCapability());
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return static_cast<int>(kSharedPerBlock - std::min(kSharedPerBlock, info.staticSharedBytes));
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return -1;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      return static_cast<int>(info.requiredClusterDim[0]);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      return static_cast<int>(info.requiredClusterDim[1]);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return static_cast<int>(info.requiredClusterDim[2]);
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return 0;
    default: return std::nullopt;
  }
}

CUresult checkSetting(const KernelInfo& info, CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return value >= 0 &&
                     static_cast<unsigned>(value) + info.staticSharedBytes <= kSharedPerBlockOptin
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_VALUE;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return value >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

int effective(const Function& function, CUfunction_attribute attribute) {
  if (const auto own = function.settings.get(attribute)) return *own;
  const Kernel* kernel = function.kernel;
  const auto set = kernel == nullptr
                       ? std::nullopt
                       : kernel->settings[function.module.context.device.ordinal]->get(attribute);
  return set ? *set
             : compiledAttribute(function.info, function.module.ptxVersion, attribute).value_or(0);
}

}  // namespace simulator

using namespace simulator;

namespace {

/// A kernel in the place of a function means its function in the current context.
template <class Body>
CUresult onFunction(CUfunction handle, Body&& body) {
  return withoutContext([&]() -> CUresult {
    auto function = Handles<Function>::all().find(handle);
    if (function != nullptr) return body(*function);
    Context* context = nullptr;
    CUresult status = currentContext(context);
    if (status == CUDA_SUCCESS) status = findFunction(*context, handle, function);
    return status == CUDA_SUCCESS ? body(*function) : status;
  });
}

/// Runs body(Kernel&, FunctionSettings&) on a kernel and its settings for a device.
template <class Body>
CUresult onKernel(CUkernel handle, CUdevice dev, Body&& body) {
  return inDriver([&]() -> CUresult {
    const auto kernel = Handles<Kernel>::all().find(handle);
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const Device* device = findDevice(dev);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE
                             : body(*kernel, *kernel->settings[device->ordinal]);
  });
}

CUresult parameterInfo(const KernelInfo& info, std::size_t index, std::size_t* offset,
                       std::size_t* size) {
  if (offset == nullptr || index >= info.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = info.parameters[index].offset;
  if (size != nullptr) *size = info.parameters[index].size;
  return CUDA_SUCCESS;
}

bool cacheConfig(CUfunc_cache config) {
  return static_cast<unsigned>(config) <= CU_FUNC_CACHE_PREFER_EQUAL;
}

}  // namespace

DRIVER_CALL cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return onFunction(hfunc, [&](Function& function) -> CUresult {
    if (pi == nullptr || !compiledAttribute(function.info, 0, attrib))
      return CUDA_ERROR_INVALID_VALUE;
    *pi = effective(function, attrib);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  return onFunction(hfunc, [&](Function& function) {
    const CUresult status = checkSetting(function.info, attrib, value);
    if (status == CUDA_SUCCESS) function.settings.set(attrib, value);
    return status;
  });
}

DRIVER_CALL cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  return onFunction(hfunc, [&](Function&) {
    return cacheConfig(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

DRIVER_CALL cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
  return onFunction(hfunc, [&](Function&) {
    return static_cast<unsigned>(config) <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  });
}

DRIVER_CALL cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  return onFunction(hfunc, [&](Function& function) -> CUresult {
    if (hmod == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *hmod = handleOf<CUmodule>(&function.module);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuFuncGetName(const char** name, CUfunction hfunc) {
  return onFunction(hfunc, [&](Function& function) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = function.info.name.c_str();
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset,
                               size_t* paramSize) {
  return onFunction(func, [&](Function& function) {
    return parameterInfo(function.info, paramIndex, paramOffset, paramSize);
  });
}

DRIVER_CALL cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return onFunction(function, [&](Function&) -> CUresult {
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuFuncLoad(CUfunction function) {
  return onFunction(function, [](Function&) { return CUDA_SUCCESS; });
}

DRIVER_CALL cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel,
                                 CUdevice dev) {
  return onKernel(kernel, dev, [&](Kernel& found, FunctionSettings& settings) -> CUresult {
    const auto compiled = compiledAttribute(found.info, ptxVersionOf(found.library.texts), attrib);
    if (pi == nullptr || !compiled) return CUDA_ERROR_INVALID_VALUE;
    *pi = settings.get(attrib).value_or(*compiled);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
                                 CUdevice dev) {
  return onKernel(kernel, dev, [&](Kernel& found, FunctionSettings& settings) {
    const CUresult status = checkSetting(found.info, attrib, val);
    if (status == CUDA_SUCCESS) settings.set(attrib, val);
    return status;
  });
}

DRIVER_CALL cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
  return onKernel(kernel, dev, [&](Kernel&, FunctionSettings&) {
    return cacheConfig(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

DRIVER_CALL cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset,
                                 size_t* paramSize) {
  return onKernel(kernel, 0, [&](Kernel& found, FunctionSettings&) {
    return parameterInfo(found.info, paramIndex, paramOffset, paramSize);
  });
}
