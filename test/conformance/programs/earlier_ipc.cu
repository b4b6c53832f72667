// cuIpcOpenMemHandle as CUDA 4.1 exported it, and as it is now: another process fills memory through it, and closes it.
// conformance: flags=-lcuda judges=itself
#include <utility>

#include "by_name.h"
#include "two_roles.h"

constexpr std::size_t kCount = 1 << 20;

static void owner(const Processes& processes) {
  CUdeviceptr memory = 0;
  CUipcMemHandle handle{};
  EXPECT_OK(cuMemAlloc(&memory, kCount * 4));
  EXPECT_OK(cuMemsetD32(memory, 1, kCount));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(cuIpcGetMemHandle(&handle, memory));
  processes.send(handle);
  processes.meet();  // the other one has closed it
  EXPECT(valueAt(memory) == 1 && valueAt(memory + 4) == 2 && valueAt(memory + (kCount - 1) * 4) == 2);
  EXPECT_OK(cuMemFree(memory));
}

static void user(const Processes& processes) {
  const auto handle = processes.receive<CUipcMemHandle>();
  CUdeviceptr memory = 0;
  EXPECT_OK(cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  EXPECT(valueAt(memory) == 1);
  EXPECT_OK(cuIpcCloseMemHandle(memory));
  EXPECT_OK(byName("cuIpcOpenMemHandle", &memory, handle, unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS}));
  EXPECT(valueAt(memory) == 1);
  EXPECT_OK(cuMemsetD32(memory + 4, 2, kCount - 1));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(cuIpcCloseMemHandle(memory));
  EXPECT(cuIpcCloseMemHandle(memory) != CUDA_SUCCESS);
  processes.meet();
}

int main() { return playRoles(owner, user); }
