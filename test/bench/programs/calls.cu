// Cost of calls through the product for which the driver does little: one that is only enqueued,
// and one with a reply.
#include <cuda.h>

#include "measure.h"

int main() {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const auto record = driverFunction<decltype(&cuEventRecord)>("cuEventRecord", 2000);
  const auto flags = driverFunction<decltype(&cuStreamGetFlags)>("cuStreamGetFlags", 5050);
  double enqueue = 1e9;
  for (int round = 0; round < 200; ++round) {
    const double start = seconds();
    for (int i = 0; i < 200; ++i) record(event, stream);
    enqueue = std::min(enqueue, seconds() - start);
    CHECK(cudaStreamSynchronize(stream));
  }
  report("enqueue", enqueue / 200 * 1e9, "ns");
  unsigned found = 0;
  const double roundTrip = best(200, [&] {
    for (int i = 0; i < 200; ++i) flags(stream, &found);
  });
  report("round trip", roundTrip / 200 * 1e9, "ns");
}
