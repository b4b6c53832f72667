// Managed memory: a kernel after a prefetch and at its first use, and turns with the host.
#include "measure.h"

__global__ void add(float* data, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x)
    data[i] += 1;
}

static const std::size_t kBytes = std::size_t{1} << 30;

static void run(float* data) {
  add<<<1056, 256>>>(data, kBytes / sizeof(float));
  CHECK(cudaDeviceSynchronize());
}

template <class F>
static double once(F body) {
  return best(1, body);
}

static volatile float seen;

static void bringBack(float* data) {
  for (std::size_t i = 0; i < kBytes / sizeof(float); i += 1024) seen = data[i];
}

int main() {
  float* data = nullptr;
  const cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0};
  CHECK(cudaMallocManaged(&data, kBytes));
  const auto touch = [&] {
    for (std::size_t i = 0; i < kBytes / sizeof(float); i += 1024) data[i] = 1;
  };
  touch();
  report("managed 1 GiB, first use by a kernel", kBytes / once([&] { run(data); }) / 1e9, "GB/s");
  report("managed 1 GiB, kernel", 2 * kBytes / best(5, [&] { run(data); }) / 1e9, "GB/s");
  report("managed 1 GiB, host reads it", kBytes / once([&] { bringBack(data); }) / 1e9, "GB/s");
  touch();
  report("managed 1 GiB, prefetch", kBytes / once([&] {
                                      CHECK(cudaMemPrefetchAsync(data, kBytes, gpu, 0));
                                      CHECK(cudaDeviceSynchronize());
                                    }) / 1e9,
         "GB/s");
  run(data);
  report("managed 1 GiB, kernel and host reads a value",
         best(20,
              [&] {
                run(data);
                seen = data[0];
              }) *
             1e6,
         "us");
  report("managed 1 GiB, kernel and host writes a value",
         best(20,
              [&] {
                run(data);
                data[0] = 1;
              }) *
             1e6,
         "us");
}
