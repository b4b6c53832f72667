// cudaIpc of events: a stream of one process waits for work of the other one, in both directions.
// conformance: judges=itself
#include <utility>

#include "processes.h"

namespace {

constexpr int kRounds = 20;
constexpr int kCount = 1 << 16;

/// Takes a while, so that a missing wait shows.
__global__ void step(int* data, int count, int from) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] = data[i] == from ? from + 1 : -1;
}

struct Shared {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t owner, user;
};

/// The processes take turns: each adds one to what the other one has left. Only events order it.
void play(const Processes& processes, int* data, cudaEvent_t mine, cudaEvent_t other, int begin) {
  cudaStream_t stream;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < kRounds; ++round) {
    if (begin == 1 || round > 0) {
      processes.receive<char>();  // the other one has recorded
      EXPECT_OK(cudaStreamWaitEvent(stream, other, 0));
    }
    step<<<1, 64, 0, stream>>>(data, kCount, 2 * round + begin);
    EXPECT_OK(cudaEventRecord(mine, stream));
    processes.send('r');
  }
  if (begin == 0) processes.receive<char>();
  EXPECT_OK(cudaEventSynchronize(other));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaEventQuery(mine));
  EXPECT_OK(cudaStreamDestroy(stream));
}

cudaEvent_t makeEvent() {
  cudaEvent_t event = nullptr;
  EXPECT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
  return event;
}

void owner(const Processes& processes) {
  int* data = nullptr;
  EXPECT_OK(cudaMalloc(&data, kCount * sizeof(int)));
  EXPECT_OK(cudaMemset(data, 0, kCount * sizeof(int)));
  EXPECT_OK(cudaDeviceSynchronize());
  const cudaEvent_t event = makeEvent();
  Shared shared{};
  EXPECT_OK(cudaIpcGetMemHandle(&shared.memory, data));
  EXPECT_OK(cudaIpcGetEventHandle(&shared.owner, event));
  processes.send(shared);
  const auto handle = processes.receive<cudaIpcEventHandle_t>();
  cudaEvent_t other = nullptr;
  EXPECT_OK(cudaIpcOpenEventHandle(&other, handle));
  EXPECT_OK(cudaEventQuery(other));  // nothing is recorded
  processes.meet();
  play(processes, data, event, other, 0);
  static int result[kCount];
  EXPECT_OK(cudaMemcpy(result, data, sizeof result, cudaMemcpyDeviceToHost));
  EXPECT(result[0] == 2 * kRounds && result[kCount - 1] == 2 * kRounds);
  float milliseconds = 0;
  EXPECT(cudaEventElapsedTime(&milliseconds, event, event) == cudaErrorInvalidResourceHandle);
  processes.meet();
  EXPECT_OK(cudaEventDestroy(other));
  EXPECT_OK(cudaEventDestroy(event));
  processes.meet();  // the other one has closed the memory
  EXPECT_OK(cudaFree(data));
}

void user(const Processes& processes) {
  const auto shared = processes.receive<Shared>();
  int* data = nullptr;
  cudaEvent_t other = nullptr;
  const cudaEvent_t event = makeEvent();
  cudaIpcEventHandle_t handle;
  EXPECT_OK(cudaIpcOpenMemHandle((void**)&data, shared.memory, cudaIpcMemLazyEnablePeerAccess));
  EXPECT_OK(cudaIpcOpenEventHandle(&other, shared.owner));
  EXPECT_OK(cudaIpcGetEventHandle(&handle, event));
  processes.send(handle);
  processes.meet();
  play(processes, data, event, other, 1);
  processes.meet();
  EXPECT_OK(cudaEventDestroy(other));
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaIpcCloseMemHandle(data));
  processes.meet();
}

}  // namespace

int main() {
  Processes processes;
  if (processes.isChild())
    user(processes);
  else
    owner(processes);
  return processes.end();
}
