// Bandwidth of copies between host and device, from pinned and from pageable memory.
#include "measure.h"

static void* device;

/// A copy from pageable memory returns when the driver has taken the data, so it is measured with
/// the synchronize behind it.
static void both(const char* what, void* host, std::size_t bytes, int rounds) {
  char name[64];
  const double in = best(rounds, [&] {
    CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice)), CHECK(cudaDeviceSynchronize());
  });
  std::snprintf(name, sizeof name, "%s copy, host to device", what);
  report(name, bytes / in / 1e9, "GB/s");
  const double out =
      best(rounds, [&] { CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost)); });
  std::snprintf(name, sizeof name, "%s copy, device to host", what);
  report(name, bytes / out / 1e9, "GB/s");
}

int main() {
  const std::size_t most = std::size_t{1} << 30;
  void* pinned = nullptr;
  std::vector<char> ordinary(most, 1);
  CHECK(cudaMalloc(&device, most));
  CHECK(cudaMallocHost(&pinned, 256 << 20));
  both("pinned 256 MiB", pinned, 256 << 20, 7);
  both("pageable 4 KiB", ordinary.data(), 4096, 200);
  const double row = best(50, [&] {
    for (int i = 0; i < 100; ++i)
      CHECK(cudaMemcpy(device, ordinary.data(), 4096, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
  });
  report("pageable 4 KiB copy, host to device, 100 in a row", 100 * 4096 / row / 1e9, "GB/s");
  both("pageable 1 MiB", ordinary.data(), 1 << 20, 50);
  both("pageable 64 MiB", ordinary.data(), 64 << 20, 7);
  both("pageable 1 GiB", ordinary.data(), most, 3);
}
