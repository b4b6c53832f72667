// The table of the device runtime's functions, its queries, and its errors.
#include "native/simulator/ptx/runtime/device_runtime.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "native/simulator/ptx/machine/addresses.h"
#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/program/program.h"
#include "native/simulator/ptx/runtime/error_texts.h"

namespace simulator::ptx {
namespace {

constexpr std::uint64_t kErrorInitialization = 3, kErrorUnsupportedLimit = 215,
                        kErrorMemoryAllocation = 2, kErrorInvalidDevice = 101;

DeviceRuntime& driverOf(const RuntimeCall& call) {
  return *call.warp.block->run->environment.runtime;
}

std::uint64_t getLastError(const RuntimeCall& call) {
  const std::uint32_t last = call.lastError();
  call.lastError() = CUDA_SUCCESS;
  return last;
}
std::uint64_t peekAtLastError(const RuntimeCall& call) { return call.lastError(); }
std::uint64_t getErrorName(const RuntimeCall& call) {
  return reinterpret_cast<std::uint64_t>(errorName(call.number(0)));
}
std::uint64_t getErrorString(const RuntimeCall& call) {
  return reinterpret_cast<std::uint64_t>(errorString(call.number(0)));
}

/// int* value, cudaDeviceAttr attribute, int device
std::uint64_t deviceGetAttribute(const RuntimeCall& call) {
  if (static_cast<int>(call.number(2)) != driverOf(call).device()) return kErrorInvalidDevice;
  const auto value = driverOf(call).deviceAttribute(static_cast<int>(call.number(1)));
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  return call.write(call.arguments[0], *value);
}

/// size_t* value, cudaLimit limit
std::uint64_t deviceGetLimit(const RuntimeCall& call) {
  const auto value = driverOf(call).limit(static_cast<int>(call.number(1)));
  return value ? call.write(call.arguments[0], std::uint64_t{*value}) : kErrorUnsupportedLimit;
}

std::uint64_t deviceGetCacheConfig(const RuntimeCall& call) {
  return call.write(call.arguments[0], driverOf(call).cacheConfig());
}

std::uint64_t getDevice(const RuntimeCall& call) {
  return call.write(call.arguments[0], driverOf(call).device());
}
std::uint64_t getDeviceCount(const RuntimeCall& call) {
  return call.write(call.arguments[0], driverOf(call).deviceCount());
}
std::uint64_t runtimeGetVersion(const RuntimeCall& call) {
  return call.write(call.arguments[0], driverOf(call).version());
}

/// cudaFuncAttributes as driver_types.h lays it out, up to its reserved members.
std::uint64_t funcGetAttributes(const RuntimeCall& call) {
  const auto [program, kernel] = LinkedProgram::kernelAt(call.arguments[1]);
  if (program == nullptr) return kErrorInvalidDeviceFunction;
  const auto value = [&, p = program, k = kernel](CUfunction_attribute attribute) {
    return driverOf(call).functionAttribute(*p, k, attribute);
  };
  const struct {
    std::uint64_t bytes[3];
    int numbers[13];
  } attributes{{static_cast<std::uint64_t>(value(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)),
                static_cast<std::uint64_t>(value(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)),
                static_cast<std::uint64_t>(value(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES))},
               {value(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), value(CU_FUNC_ATTRIBUTE_NUM_REGS),
                value(CU_FUNC_ATTRIBUTE_PTX_VERSION), value(CU_FUNC_ATTRIBUTE_BINARY_VERSION),
                value(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA),
                value(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
                value(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
                value(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET),
                value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
                value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
                value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH),
                value(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE),
                value(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)}};
  return call.write(call.arguments[0], &attributes,
                    sizeof attributes.bytes + sizeof attributes.numbers);
}

/// int* blocks, const void* function, int threads, size_t dynamicShared{, unsigned flags}
std::uint64_t occupancy(const RuntimeCall& call) {
  const auto [program, kernel] = LinkedProgram::kernelAt(call.arguments[1]);
  if (program == nullptr) return kErrorInvalidDeviceFunction;
  const auto threads = static_cast<int>(call.number(2));
  if (threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  return call.write(call.arguments[0],
                    driverOf(call).blocksPerMultiprocessor(
                        *program, kernel, static_cast<unsigned>(threads), call.arguments[3]));
}

/// void** address, size_t bytes. The heap is that of malloc.
std::uint64_t allocateHeap(const RuntimeCall& call) {
  const auto& allocate = call.warp.block->run->environment.deviceMalloc;
  const std::uint64_t address = allocate ? allocate(call.arguments[1]) : 0;
  if (address == 0) return kErrorMemoryAllocation;
  return call.write(call.arguments[0], address);
}
std::uint64_t freeHeap(const RuntimeCall& call) {
  const auto& release = call.warp.block->run->environment.deviceFree;
  if (release && call.arguments[0] != 0) release(call.arguments[0]);
  return CUDA_SUCCESS;
}

/// The names are completed by the prefix of the second version.
constexpr RuntimeFunction kFunctions[] = {
    {"GetParameterBuffer", getParameterBuffer, false},
    {"GetParameterBufferV2", getParameterBufferV2, false},
    {"LaunchDevice", launchDevice},
    {"LaunchDeviceV2", launchDeviceV2},
    {"LaunchDevice_ptsz", launchDevicePerThread},
    {"LaunchDeviceV2_ptsz", launchDeviceV2PerThread},
    {"StreamCreateWithFlags", streamCreateWithFlags},
    {"StreamDestroy", streamDestroy},
    {"StreamWaitEvent", streamWaitEvent},
    {"StreamWaitEvent_ptsz", streamWaitEventPerThread},
    {"EventCreateWithFlags", eventCreateWithFlags},
    {"EventRecord", eventRecord},
    {"EventRecord_ptsz", eventRecordPerThread},
    {"EventRecordWithFlags", eventRecord},
    {"EventRecordWithFlags_ptsz", eventRecordPerThread},
    {"EventDestroy", eventDestroy},
    {"MemcpyAsync", memcpyAsync},
    {"MemcpyAsync_ptsz", memcpyAsyncPerThread},
    {"Memcpy2DAsync", memcpy2DAsync},
    {"Memcpy2DAsync_ptsz", memcpy2DAsyncPerThread},
    {"Memcpy3DAsync", memcpy3DAsync},
    {"Memcpy3DAsync_ptsz", memcpy3DAsyncPerThread},
    {"MemsetAsync", memsetAsync},
    {"MemsetAsync_ptsz", memsetAsyncPerThread},
    {"Memset2DAsync", memset2DAsync},
    {"Memset2DAsync_ptsz", memset2DAsyncPerThread},
    {"Memset3DAsync", memset3DAsync},
    {"Memset3DAsync_ptsz", memset3DAsyncPerThread},
    {"GetLastError", getLastError, false},
    {"PeekAtLastError", peekAtLastError, false},
    {"GetErrorName", getErrorName, false},
    {"GetErrorString", getErrorString, false},
    {"DeviceGetAttribute", deviceGetAttribute},
    {"DeviceGetLimit", deviceGetLimit},
    {"DeviceGetCacheConfig", deviceGetCacheConfig},
    {"GetDevice", getDevice},
    {"GetDeviceCount", getDeviceCount},
    {"RuntimeGetVersion", runtimeGetVersion},
    {"FuncGetAttributes", funcGetAttributes},
    {"OccupancyMaxActiveBlocksPerMultiprocessor", occupancy},
    {"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", occupancy},
    {"Malloc", allocateHeap},
    {"Free", freeHeap},
};

}  // namespace

std::uint64_t RuntimeCall::write(std::uint64_t address, const void* value,
                                 std::size_t bytes) const {
  void* found = hostAddress(warp, lane, address, bytes, Use::write);
  if (found == nullptr) return warp.block->run->fail(CUDA_ERROR_ILLEGAL_ADDRESS), CUDA_SUCCESS;
  std::memcpy(found, value, bytes);
  return CUDA_SUCCESS;
}

std::uint32_t& RuntimeCall::lastError() const {
  std::vector<std::uint32_t>& errors = warp.block->runtimeErrors;
  if (errors.empty()) errors.resize(warp.block->warps.size() * kLanes);
  return errors[warp.index * kLanes + lane];
}

int runtimeFunction(std::string_view name) {
  constexpr std::string_view kPrefix = "__cudaCDP2";
  if (!name.starts_with(kPrefix)) return -1;
  const auto* found = std::find_if(
      std::begin(kFunctions), std::end(kFunctions),
      [&](const RuntimeFunction& each) { return each.name == name.substr(kPrefix.size()); });
  return found == std::end(kFunctions) ? -1 : static_cast<int>(found - std::begin(kFunctions));
}

std::uint64_t callRuntime(int number, const RuntimeCall& call) {
  const RuntimeFunction& function = kFunctions[number];
  if (call.warp.block->run->environment.runtime == nullptr) return kErrorInitialization;
  const std::uint64_t result = function.body(call);
  if (function.returnsError && result != CUDA_SUCCESS)
    call.lastError() = static_cast<std::uint32_t>(result);
  return result;
}

}  // namespace simulator::ptx
