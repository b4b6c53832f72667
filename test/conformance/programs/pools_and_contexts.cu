// A pool is the device's: what was allocated from it outlives the context in which it was, also where that is the primary one.
// conformance: flags=-lcuda alone=yes
#include <cstdint>

#include "show_driver.h"

constexpr size_t kBytes = 64 << 20;

static void showUse(CUmemoryPool pool) {
  std::uint64_t reserved = 0, used = 0;
  cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
  SHOW(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  std::printf("reserved %d MiB, used %d MiB\n", static_cast<int>(reserved >> 20), static_cast<int>(used >> 20));
}

static size_t freeBytes() {
  size_t free = 0, total = 0;
  cuMemGetInfo(&free, &total);
  return free;
}

static CUstream primaryStream() {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  SHOW(cuDevicePrimaryCtxRetain(&context, 0));
  SHOW(cuCtxSetCurrent(context));
  SHOW(cuStreamCreate(&stream, 0));
  return stream;
}

static CUdeviceptr allocate(CUmemoryPool pool, CUstream stream) {
  CUdeviceptr address = 0;
  SHOW(cuMemAllocFromPoolAsync(&address, kBytes, pool, stream));
  SHOW(cuStreamSynchronize(stream));
  return address;
}

static void release(CUdeviceptr address, CUstream stream) {
  SHOW(cuMemFreeAsync(address, stream));
  SHOW(cuStreamSynchronize(stream));
}

/// Whole MiB; what else the device does is less.
static void showChange(const char* what, size_t before) {
  const auto change = static_cast<long long>(freeBytes() - before);
  std::printf("%s: %lld MiB more are free\n", what, (change + (change < 0 ? -(1 << 20) : (1 << 20)) / 2) / (1 << 20));
}

int main() {
  CUmemoryPool pool = nullptr, standard = nullptr;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  SHOW(cuInit(0));
  CUstream stream = primaryStream();
  SHOW(cuMemPoolCreate(&pool, &properties));
  SHOW(cuDeviceGetDefaultMemPool(&standard, 0));
  CUdeviceptr own = allocate(pool, stream), other = allocate(standard, stream);
  size_t before = freeBytes();

  std::puts("the primary context is reset");
  SHOW(cuDevicePrimaryCtxReset(0));
  stream = primaryStream();
  showChange("after the reset", before);
  showUse(pool);
  showUse(standard);
  release(other, stream);
  release(own, stream);
  showUse(pool);
  showUse(standard);
  own = allocate(pool, stream);
  showUse(pool);

  std::puts("a context of the program's own is destroyed");
  CUcontext context = nullptr;
  CUstream inside = nullptr;
  SHOW(cuCtxCreate(&context, nullptr, 0, 0));
  SHOW(cuStreamCreate(&inside, 0));
  other = allocate(pool, inside);
  SHOW(cuCtxDestroy(context));
  SHOW(cuDevicePrimaryCtxRetain(&context, 0));
  SHOW(cuCtxSetCurrent(context));
  showUse(pool);
  release(other, stream);
  showUse(pool);

  std::puts("a pool that was destroyed, and after it the primary context");
  before = freeBytes();
  SHOW(cuMemPoolDestroy(pool));
  SHOW(cuDevicePrimaryCtxReset(0));
  stream = primaryStream();
  showChange("after the reset", before);
  release(own, stream);
  showChange("after it was freed", before);
}
