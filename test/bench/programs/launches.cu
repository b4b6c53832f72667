// Cost of launches, synchronization, events and small allocations.
#include <cuda.h>

#include "measure.h"

__global__ void nothing() {}
__global__ void run(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) continue;
}

static void allocate(const char* name, std::size_t bytes, int times) {
  const double allocation = best(5, [&] {
    for (int i = 0; i < times; ++i) {
      void* p = nullptr;
      CHECK(cudaMalloc(&p, bytes));
      CHECK(cudaFree(p));
    }
  });
  report(name, allocation / times * 1e6, "us");
}

int main() {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int i = 0; i < 1000; ++i) nothing<<<1, 32, 0, stream>>>();
  CHECK(cudaStreamSynchronize(stream));

  const double many = best(5, [&] {
    for (int i = 0; i < 20000; ++i) nothing<<<1, 32, 0, stream>>>();
    CHECK(cudaStreamSynchronize(stream));
  });
  report("20,000 launches and the final synchronize", many * 1e3, "ms");

  double shallow = 1e9;
  for (int round = 0; round < 20; ++round) {
    const double start = seconds();
    for (int i = 0; i < 500; ++i) nothing<<<1, 32, 0, stream>>>();
    shallow = std::min(shallow, seconds() - start);
    CHECK(cudaStreamSynchronize(stream));
  }
  report("launch, 500 in a row", shallow / 500 * 1e6, "us");

  const double pair = best(5, [&] {
    for (int i = 0; i < 2000; ++i) {
      nothing<<<1, 32, 0, stream>>>();
      CHECK(cudaStreamSynchronize(stream));
    }
  });
  report("launch and synchronize", pair / 2000 * 1e6, "us");

  const double whole = best(5, [&] {
    for (int i = 0; i < 2000; ++i) {
      nothing<<<1, 32>>>();
      CHECK(cudaDeviceSynchronize());
    }
  });
  report("launch and synchronize the device", whole / 2000 * 1e6, "us");

  allocate("cuMemAlloc and cuMemFree of 4 KiB", 4 << 10, 200);
  allocate("cuMemAlloc and cuMemFree of 1 MiB", 1 << 20, 200);
  allocate("cuMemAlloc and cuMemFree of 1 GiB", 1 << 30, 20);

  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 1 << 20));
  const auto attribute =
      driverFunction<decltype(&cuPointerGetAttribute)>("cuPointerGetAttribute", 4000);
  CUdeviceptr pointer = 0;
  const double asking = best(20, [&] {
    for (int i = 0; i < 500; ++i)
      attribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                reinterpret_cast<CUdeviceptr>(memory));
  });
  report("device pointer of an address", asking / 500 * 1e6, "us");
  CHECK(cudaFree(memory));

  double recording = 1e9;
  for (int round = 0; round < 20; ++round) {
    const double start = seconds();
    for (int i = 0; i < 500; ++i) CHECK(cudaEventRecord(event, stream));
    recording = std::min(recording, seconds() - start);
    CHECK(cudaStreamSynchronize(stream));
  }
  report("event record", recording / 500 * 1e6, "us");

  const double query = best(20, [&] {
    for (int i = 0; i < 500; ++i) cudaEventQuery(event);
  });
  report("event query", query / 500 * 1e6, "us");

  const double streamQuery = best(20, [&] {
    for (int i = 0; i < 500; ++i) cudaStreamQuery(stream);
  });
  report("stream query", streamQuery / 500 * 1e6, "us");

  // What a program pays that looks now and then whether its work is done.
  double busy = 1e9;
  for (int round = 0; round < 20; ++round) {
    run<<<1, 1, 0, stream>>>(10'000'000);
    CHECK(cudaEventRecord(event, stream));
    busy = std::min(busy, best(1, [&] {
                      for (int i = 0; i < 500; ++i) cudaEventQuery(event);
                    }));
    CHECK(cudaStreamSynchronize(stream));
  }
  report("event query, work under way", busy / 500 * 1e6, "us");
}
