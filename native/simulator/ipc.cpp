// Memory and events of other processes.
#include <cstring>

#include "native/simulator/allocations.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/event.h"
#include "native/simulator/handles.h"
#include "native/simulator/memory.h"
#include "native/simulator/shared_event.h"
#include "native/simulator/shared_memory.h"

using namespace simulator;

namespace {

/// The content of a CUipcEventHandle.
struct EventHandle {
  static constexpr std::uint32_t kMagic = 0x45504953;

  std::uint32_t magic;
  std::uint32_t unused[5];
  OfferedFile event;
};
static_assert(sizeof(EventHandle) == sizeof(CUipcEventHandle));

bool isImported(const Allocation& allocation) {
  return allocation.kind == MemoryKind::imported && !allocation.importedOfPool();
}

}  // namespace

DRIVER_CALL cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  return inContext([&](Context&) -> CUresult {
    if (pHandle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = Allocations::all().find(dptr);
    if (!found || found->kind != MemoryKind::device) return CUDA_ERROR_INVALID_VALUE;
    ExportedMemory name{};
    const CUresult status = exportMemory(*found, name);
    if (status == CUDA_SUCCESS) std::memcpy(pHandle, &name, sizeof name);
    return status;
  });
}

DRIVER_CALL cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return inContext([&](Context& context) -> CUresult {
    if (pdptr == nullptr || (Flags & CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == 0)
      return CUDA_ERROR_INVALID_VALUE;
    ExportedMemory name{};
    std::memcpy(&name, &handle, sizeof name);
    std::uint64_t address = 0;
    if (name.magic != ExportedMemory::kMagic) return CUDA_ERROR_INVALID_VALUE;
    const CUresult status = importMemory(&context, nullptr, name, address);
    if (status == CUDA_SUCCESS) *pdptr = address;
    return status;
  });
}

DRIVER_CALL cuIpcCloseMemHandle(CUdeviceptr dptr) {
  return inContext([&](Context&) -> CUresult {
    const auto found = Allocations::all().find(dptr);
    if (!found || found->begin != dptr || !isImported(*found)) return CUDA_ERROR_INVALID_VALUE;
    if (!dropImport(dptr)) return CUDA_SUCCESS;
    synchronizeAll();
    if (const auto taken = Allocations::all().take(dptr, isImported)) release(*taken);
    return fault();
  });
}

DRIVER_CALL cuIpcGetEventHandle(CUipcEventHandle* pHandle, CUevent event) {
  return inContext([&](Context&) -> CUresult {
    const auto found = Handles<Event>::all().find(event);
    if (found == nullptr || found->shared == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (pHandle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto name = found->shared->offer();
    if (!name) return CUDA_ERROR_OUT_OF_MEMORY;
    const EventHandle content{EventHandle::kMagic, {}, *name};
    std::memcpy(pHandle, &content, sizeof content);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuIpcOpenEventHandle(CUevent* phEvent, CUipcEventHandle handle) {
  return inContext([&](Context& context) -> CUresult {
    if (phEvent == nullptr) return CUDA_ERROR_INVALID_VALUE;
    EventHandle content{};
    std::memcpy(&content, &handle, sizeof content);
    if (content.magic != EventHandle::kMagic) return CUDA_ERROR_MAP_FAILED;
    if (offeredHere(content.event)) return CUDA_ERROR_INVALID_CONTEXT;
    auto shared = SharedEvent::open(content.event);
    if (shared == nullptr) return CUDA_ERROR_MAP_FAILED;
    auto event = std::make_shared<Event>(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS,
                                         std::move(shared));
    *phEvent = handleOf<CUevent>(event.get());
    Handles<Event>::all().add(std::move(event));
    return CUDA_SUCCESS;
  });
}
