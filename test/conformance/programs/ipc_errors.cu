// cudaIpc refuses memory that cannot be exported, handles of the own process, and invented handles.
// conformance: judges=itself
#include <utility>

#include "processes.h"

namespace {

void owner(const Processes& processes) {
  int *device = nullptr, *host = nullptr;
  int local = 0;
  EXPECT_OK(cudaMalloc(&device, 1 << 22));
  EXPECT_OK(cudaMallocHost(&host, 4096));
  cudaIpcMemHandle_t handle{};
  SHOW(cudaIpcGetMemHandle(&handle, host));
  SHOW(cudaIpcGetMemHandle(&handle, &local));
  SHOW(cudaIpcGetMemHandle(&handle, nullptr));
  EXPECT(cudaIpcGetMemHandle(&handle, host) != cudaSuccess);
  EXPECT(cudaIpcGetMemHandle(&handle, &local) != cudaSuccess);
  EXPECT_OK(cudaIpcGetMemHandle(&handle, device));
  void* opened = nullptr;
  SHOW(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
  EXPECT(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess) == cudaErrorDeviceUninitialized);
  SHOW(cudaIpcCloseMemHandle(device));
  EXPECT(cudaIpcCloseMemHandle(device) != cudaSuccess);
  cudaEvent_t plain = nullptr, timed = nullptr, shared = nullptr;
  cudaIpcEventHandle_t eventHandle{};
  EXPECT(cudaEventCreateWithFlags(&timed, cudaEventInterprocess) == cudaErrorInvalidValue);
  EXPECT_OK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
  EXPECT_OK(cudaEventCreateWithFlags(&shared, cudaEventDisableTiming | cudaEventInterprocess));
  SHOW(cudaIpcGetEventHandle(&eventHandle, plain));
  EXPECT(cudaIpcGetEventHandle(&eventHandle, plain) != cudaSuccess);
  EXPECT_OK(cudaIpcGetEventHandle(&eventHandle, shared));
  cudaEvent_t again = nullptr;
  SHOW(cudaIpcOpenEventHandle(&again, eventHandle));
  EXPECT(cudaIpcOpenEventHandle(&again, eventHandle) != cudaSuccess);
  processes.send(handle);
  processes.meet();  // the other one has opened and closed it
  EXPECT_OK(cudaFree(device));
  processes.meet();
  processes.meet();
  EXPECT_OK(cudaFreeHost(host));
}

void user(const Processes& processes) {
  const auto handle = processes.receive<cudaIpcMemHandle_t>();
  void* opened = nullptr;
  SHOW(cudaIpcOpenMemHandle(&opened, handle, 0));
  EXPECT_OK(cudaIpcOpenMemHandle(&opened, handle, 77));  // the driver ignores other bits
  EXPECT_OK(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
  SHOW(cudaFree(opened));
  EXPECT_OK(cudaMemset(opened, 1, 1 << 22));
  EXPECT_OK(cudaDeviceSynchronize());
  cudaIpcMemHandle_t copy{};
  SHOW(cudaIpcGetMemHandle(&copy, opened));
  EXPECT_OK(cudaIpcCloseMemHandle(opened));
  EXPECT_OK(cudaIpcCloseMemHandle(opened));
  SHOW(cudaIpcCloseMemHandle(opened));
  EXPECT(cudaIpcCloseMemHandle(opened) != cudaSuccess);
  processes.meet();
  processes.meet();  // the memory is freed
  SHOW(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
  EXPECT(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess);
  cudaIpcMemHandle_t invented;
  std::memset(&invented, 0x5a, sizeof invented);
  SHOW(cudaIpcOpenMemHandle(&opened, invented, cudaIpcMemLazyEnablePeerAccess));
  EXPECT(cudaIpcOpenMemHandle(&opened, invented, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess);
  std::memset(&invented, 0, sizeof invented);
  EXPECT(cudaIpcOpenMemHandle(&opened, invented, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess);
  cudaEvent_t event = nullptr;
  cudaIpcEventHandle_t inventedEvent;
  std::memset(&inventedEvent, 0x5a, sizeof inventedEvent);
  SHOW(cudaIpcOpenEventHandle(&event, inventedEvent));
  EXPECT(cudaIpcOpenEventHandle(&event, inventedEvent) != cudaSuccess);
  std::fflush(stdout);
  processes.meet();
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Processes processes;
  if (processes.isChild())
    user(processes);
  else
    owner(processes);
  return processes.end();
}
