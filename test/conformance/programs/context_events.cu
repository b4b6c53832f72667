// cuCtxRecordEvent covers the work of all streams of a context; cuCtxWaitEvent holds all later work of a context, also in new streams.
// conformance: flags=-lcuda judges=itself
#include "stream_memory.h"

void record(CUcontext context, const Words& words) {
  const CUstream held = makeStream(), quick = makeStream();
  CUevent event = nullptr;
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  words.host[0] = 0;
  OK(cuStreamWaitValue32(held, words.pinned, 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamWriteValue32(quick, words.pinned + 4, 1, 0));
  OK(cuStreamSynchronize(quick));
  OK(cuCtxRecordEvent(context, event));
  EXPECT(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  words.host[0] = 1;
  OK(cuEventSynchronize(event));
  EXPECT(cuStreamQuery(held) == CUDA_SUCCESS);
  OK(cuEventDestroy(event));
  OK(cuStreamDestroy(held));
  OK(cuStreamDestroy(quick));
}

void wait(CUcontext context, const Words& words) {
  const CUstream held = makeStream(), old = makeStream();
  CUevent event = nullptr;
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  words.host[0] = words.host[2] = words.host[3] = 0;
  OK(cuStreamWaitValue32(held, words.pinned, 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuEventRecord(event, held));
  OK(cuCtxWaitEvent(context, event));
  const CUstream fresh = makeStream();
  OK(cuStreamWriteValue32(old, words.pinned + 8, 1, 0));
  OK(cuStreamWriteValue32(fresh, words.pinned + 12, 1, 0));
  EXPECT(cuStreamQuery(old) == CUDA_ERROR_NOT_READY);
  EXPECT(cuStreamQuery(fresh) == CUDA_ERROR_NOT_READY);
  EXPECT(words.host[2] == 0 && words.host[3] == 0);
  words.host[0] = 1;
  OK(cuCtxSynchronize());
  EXPECT(words.host[2] == 1 && words.host[3] == 1);
  OK(cuEventDestroy(event));
  for (const CUstream stream : {held, old, fresh}) OK(cuStreamDestroy(stream));
}

int main() {
  const CUcontext context = useContext();
  const Words words;
  record(context, words);
  wait(context, words);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(context, nullptr));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuCtxWaitEvent(context, nullptr));
  return verdict();
}
