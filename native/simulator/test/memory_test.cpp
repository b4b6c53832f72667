// Allocation, copies, memsets, pinned memory, pools and virtual memory management.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

TEST_CASE("memory is allocated and freed") {
  usePrimaryContext();
  CUdeviceptr p = 0, base = 0;
  std::size_t size = 0;
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemAlloc_v2)(&p, 0));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemAlloc_v2)(nullptr, 16));
  EXPECT(CUDA_ERROR_OUT_OF_MEMORY, DRIVER(cuMemAlloc_v2)(&p, std::size_t{1} << 45));
  OK(DRIVER(cuMemAlloc_v2)(&p, 1000));
  CHECK(p % 512 == 0);
  OK(DRIVER(cuMemGetAddressRange_v2)(&base, &size, p + 500));
  CHECK(base == p);
  CHECK(size == 1000);
  OK(DRIVER(cuMemFree_v2)(p));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFree_v2)(p));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFree_v2)(12345));
  EXPECT(CUDA_ERROR_NOT_FOUND, DRIVER(cuMemGetAddressRange_v2)(&base, &size, 12345));
  OK(DRIVER(cuMemFree_v2)(0));
  OK(DRIVER(cuMemAlloc_v2)(&p, 4096));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFree_v2)(p + 512));
  OK(DRIVER(cuMemFree_v2)(p));
  std::size_t pitch = 0;
  OK(DRIVER(cuMemAllocPitch_v2)(&p, &pitch, 700, 10, 4));
  CHECK(pitch == 1024);
  OK(DRIVER(cuMemFree_v2)(p));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemAllocPitch_v2)(&p, &pitch, 700, 10, 3));
}

TEST_CASE("free memory is counted") {
  usePrimaryContext();
  std::size_t before = 0, during = 0, after = 0, total = 0;
  CUdeviceptr p = 0;
  OK(DRIVER(cuMemGetInfo_v2)(&before, &total));
  OK(DRIVER(cuMemAlloc_v2)(&p, 64 << 20));
  OK(DRIVER(cuMemGetInfo_v2)(&during, &total));
  OK(DRIVER(cuMemFree_v2)(p));
  OK(DRIVER(cuMemGetInfo_v2)(&after, &total));
  CHECK(before - during == 64 << 20);
  CHECK(after == before);
}

TEST_CASE("memory is copied") {
  usePrimaryContext();
  CUdeviceptr p = 0;
  OK(DRIVER(cuMemAlloc_v2)(&p, 4096));
  std::vector<unsigned> in(1024), out(1024);
  for (unsigned i = 0; i < 1024; ++i) in[i] = i;
  OK(DRIVER(cuMemcpyHtoD_v2)(p, in.data(), 4096));
  OK(DRIVER(cuMemcpyDtoH_v2)(out.data(), p, 4096));
  CHECK(in == out);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpyHtoD_v2)(12345, in.data(), 4));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpyDtoH_v2)(out.data(), 12345, 4));
  OK(DRIVER(cuMemcpyHtoD_v2)(p, in.data(), 0));
  OK(DRIVER(cuMemcpyHtoD_v2)(0, nullptr, 0));
  OK(DRIVER(cuMemcpyDtoD_v2)(p + 2048, p, 2048));
  OK(DRIVER(cuMemcpy)(reinterpret_cast<CUdeviceptr>(out.data()), p + 2048, 2048));
  CHECK(out[5] == 5);
  OK(DRIVER(cuMemcpyHtoDAsync_v2)(p, in.data(), 4096, nullptr));
  OK(DRIVER(cuMemcpyAsync)(reinterpret_cast<CUdeviceptr>(out.data()), p, 4096, nullptr));
  CHECK(out[1023] == 1023);

  CUDA_MEMCPY2D plane{};
  plane.srcMemoryType = CU_MEMORYTYPE_HOST;
  plane.srcHost = in.data();
  plane.srcPitch = 64;
  plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.dstDevice = p;
  plane.dstPitch = 128;
  plane.dstXInBytes = 4;
  plane.WidthInBytes = 8;
  plane.Height = 3;
  OK(DRIVER(cuMemsetD32_v2)(p, 77, 1024));
  OK(DRIVER(cuMemcpy2D_v2)(&plane));
  OK(DRIVER(cuMemcpyDtoH_v2)(out.data(), p, 4096));
  CHECK(out[0] == 77);
  CHECK(out[1] == 0);
  CHECK(out[2] == 1);
  CHECK(out[3] == 77);
  CHECK(out[33] == 16);
  CHECK(out[66] == 33);
  CHECK(out[97] == 77);
  plane.Height = 0;
  OK(DRIVER(cuMemcpy2D_v2)(&plane));
  plane.Height = 3;
  plane.dstPitch = 10;
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpy2D_v2)(&plane));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpy2D_v2)(nullptr));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("memory is set") {
  usePrimaryContext();
  CUdeviceptr p = 0;
  OK(DRIVER(cuMemAlloc_v2)(&p, 1024));
  unsigned char bytes[1024];
  OK(DRIVER(cuMemsetD8_v2)(p, 1, 1024));
  OK(DRIVER(cuMemsetD16_v2)(p + 2, 0x0302, 2));
  OK(DRIVER(cuMemsetD32_v2)(p + 8, 0x07060504, 1));
  OK(DRIVER(cuMemsetD2D8_v2)(p + 64, 32, 9, 2, 3));
  OK(DRIVER(cuMemsetD2D32Async)(p + 256, 64, 0x01020304, 2, 2, nullptr));
  OK(DRIVER(cuMemcpyDtoH_v2)(bytes, p, 1024));
  CHECK(bytes[0] == 1);
  CHECK(bytes[2] == 2);
  CHECK(bytes[3] == 3);
  CHECK(bytes[5] == 3);
  CHECK(bytes[6] == 1);
  CHECK(bytes[8] == 4);
  CHECK(bytes[11] == 7);
  CHECK(bytes[64] == 9);
  CHECK(bytes[65] == 9);
  CHECK(bytes[66] == 1);
  CHECK(bytes[96] == 9);
  CHECK(bytes[129] == 9);
  CHECK(bytes[160] == 1);
  CHECK(bytes[256] == 4);
  CHECK(bytes[263] == 1);
  CHECK(bytes[323] == 1);
  CHECK(bytes[320] == 4);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemsetD32_v2)(p + 2, 0, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemsetD16_v2)(p + 1, 0, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemsetD8_v2)(12345, 0, 1));
  OK(DRIVER(cuMemsetD8_v2)(p, 0, 0));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("pinned and registered host memory is known to kernels") {
  usePrimaryContext();
  const CUfunction store = functionOf(kKernels, "store");
  unsigned* host = nullptr;
  unsigned flags = 0;
  CUdeviceptr device = 0;
  OK(DRIVER(cuMemHostAlloc)(reinterpret_cast<void**>(&host), 0, 0));
  CHECK(host == nullptr);
  OK(DRIVER(cuMemFreeHost)(nullptr));
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuMemHostAlloc)(reinterpret_cast<void**>(&host), 16, 0x80));
  OK(DRIVER(cuMemHostAlloc)(reinterpret_cast<void**>(&host), 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  OK(DRIVER(cuMemHostGetDevicePointer_v2)(&device, host, 0));
  CHECK(device == reinterpret_cast<CUdeviceptr>(host));
  OK(DRIVER(cuMemHostGetFlags)(&flags, host));
  CHECK(flags == CU_MEMHOSTALLOC_DEVICEMAP);
  unsigned value = 42;
  void* parameters[] = {&device, &value};
  OK(DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(*host == 42);
  OK(DRIVER(cuMemFreeHost)(host));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFreeHost)(host));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemHostGetFlags)(&flags, host));

  void* pages = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, DRIVER(cuMemHostUnregister)(pages));
  OK(DRIVER(cuMemHostRegister_v2)(pages, 8192, 0));
  EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, DRIVER(cuMemHostRegister_v2)(pages, 4096, 0));
  device = reinterpret_cast<CUdeviceptr>(pages);
  OK(DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(*static_cast<unsigned*>(pages) == 42);
  OK(DRIVER(cuMemHostUnregister)(pages));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemHostRegister_v2)(nullptr, 4096, 0));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemHostRegister_v2)(pages, 0, 0));
  munmap(pages, 8192);
}

TEST_CASE("a pointer has attributes") {
  usePrimaryContext();
  CUdeviceptr p = 0;
  int ordinal = -5, managed = -5, dummy = 0;
  unsigned type = 0;
  CUcontext owner = nullptr, current = nullptr;
  void* host = &dummy;
  OK(DRIVER(cuCtxGetCurrent)(&current));
  OK(DRIVER(cuMemAlloc_v2)(&p, 4096));
  OK(DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 100));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  OK(DRIVER(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
  CHECK(owner == current);
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                       reinterpret_cast<CUdeviceptr>(&dummy)));
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* data[] = {&owner, &type, &host, &managed, &ordinal};
  OK(DRIVER(cuPointerGetAttributes)(5, attributes, data, p));
  CHECK(owner == current);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(host == nullptr);
  CHECK(managed == 0);
  CHECK(ordinal == 0);
  OK(DRIVER(cuPointerGetAttributes)(5, attributes, data, reinterpret_cast<CUdeviceptr>(&dummy)));
  CHECK(owner == nullptr);
  CHECK(type == 0);
  CHECK(host == &dummy);
  CHECK(managed == 0);
  CHECK(ordinal == -2);
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("a pool keeps memory until it is free") {
  usePrimaryContext();
  CUmemoryPool pool = nullptr, current = nullptr;
  CUdeviceptr p = 0;
  cuuint64_t used = 0, threshold = 1;
  OK(DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0));
  OK(DRIVER(cuDeviceGetMemPool)(&current, 0));
  CHECK(pool == current);
  OK(DRIVER(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CHECK(threshold == 0);
  OK(DRIVER(cuMemAllocAsync)(&p, 0, nullptr));
  CHECK(p == 0);
  OK(DRIVER(cuMemFreeAsync)(p, nullptr));
  OK(DRIVER(cuMemAllocAsync)(&p, 1 << 20, nullptr));
  OK(DRIVER(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 1 << 20);
  OK(DRIVER(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &used));
  CHECK(used == 32 << 20);
  OK(DRIVER(cuMemsetD8Async)(p, 5, 1 << 20, nullptr));
  unsigned char last = 0;
  OK(DRIVER(cuMemcpyDtoH_v2)(&last, p + (1 << 20) - 1, 1));
  CHECK(last == 5);
  OK(DRIVER(cuMemFreeAsync)(p, nullptr));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFreeAsync)(p, nullptr));
  OK(DRIVER(cuStreamSynchronize)(nullptr));
  OK(DRIVER(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 0);
  OK(DRIVER(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &used));
  CHECK(used == 0);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemPoolDestroy)(pool));

  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(DRIVER(cuMemPoolCreate)(&pool, &properties));
  OK(DRIVER(cuMemAllocFromPoolAsync)(&p, 4096, pool, nullptr));
  OK(DRIVER(cuMemFree_v2)(p));
  OK(DRIVER(cuMemPoolDestroy)(pool));
}

TEST_CASE("physical memory is mapped to addresses") {
  usePrimaryContext();
  const CUfunction store = functionOf(kKernels, "store");
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t granularity = 0;
  OK(DRIVER(cuMemGetAllocationGranularity)(&granularity, &properties,
                                           CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(granularity == 2 << 20);
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0, again = 0;
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemAddressReserve)(&range, 4096, 0, 0, 0));
  OK(DRIVER(cuMemAddressReserve)(&range, 8 << 20, 0, 0, 0));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemCreate)(&handle, 4096, &properties, 0));
  OK(DRIVER(cuMemCreate)(&handle, 2 << 20, &properties, 0));
  OK(DRIVER(cuMemMap)(range, 2 << 20, 0, handle, 0));
  OK(DRIVER(cuMemMap)(range + (2 << 20), 2 << 20, 0, handle, 0));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemMap)(range, 2 << 20, 0, handle, 0));
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(DRIVER(cuMemSetAccess)(range, 4 << 20, &access, 1));
  unsigned long long flags = 0;
  OK(DRIVER(cuMemGetAccess)(&flags, &access.location, range));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  unsigned value = 99, seen = 0;
  void* parameters[] = {&range, &value};
  OK(DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  OK(DRIVER(cuMemcpyDtoH_v2)(&seen, range + (2 << 20), 4));
  CHECK(seen == 99);
  OK(DRIVER(cuMemsetD8_v2)(range + (2 << 20) - 4, 7, 8));  // in both mappings
  OK(DRIVER(cuMemcpyDtoH_v2)(&seen, range + (2 << 20), 4));
  CHECK(seen == 0x07070707);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemsetD8_v2)(range + (4 << 20) - 4, 7, 8));
  OK(DRIVER(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(range)));
  CHECK(again == handle);
  OK(DRIVER(cuMemRelease)(again));
  OK(DRIVER(cuMemRelease)(handle));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemAddressFree)(range, 8 << 20));
  OK(DRIVER(cuMemUnmap)(range, 4 << 20));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemcpyDtoH_v2)(&seen, range, 4));
  OK(DRIVER(cuMemAddressFree)(range, 8 << 20));
}

#if !defined(__SANITIZE_THREAD__)  // which places the program's memory at those addresses itself
// They would be valid again if the program registers that memory.
TEST_CASE("host memory gets no addresses that a program has reserved and given back") {
  usePrimaryContext();
  constexpr std::size_t kBytes = 8 << 20, kRanges = 16;
  CUdeviceptr ranges[kRanges] = {};
  for (CUdeviceptr& range : ranges) OK(DRIVER(cuMemAddressReserve)(&range, kBytes, 0, 0, 0));
  for (std::size_t i = 0; i < kRanges; i += 2) OK(DRIVER(cuMemAddressFree)(ranges[i], kBytes));
  for (std::size_t i = 0; i < kRanges; ++i) {
    void* const host = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto begin = reinterpret_cast<CUdeviceptr>(host);
    for (const CUdeviceptr range : ranges)
      CHECK((begin + kBytes <= range || range + kBytes <= begin));
  }
  for (std::size_t i = 1; i < kRanges; i += 2) OK(DRIVER(cuMemAddressFree)(ranges[i], kBytes));
}
#endif

// A descriptor keeps memory whose last handle has ended.
TEST_CASE("memory that is imported again takes its room on the GPU") {
  usePrimaryContext();
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const auto free = [] {
    std::size_t bytes = 0, total = 0;
    OK(DRIVER(cuMemGetInfo_v2)(&bytes, &total));
    return bytes;
  };
  const std::size_t before = free();
  CUmemGenericAllocationHandle handle = 0;
  int file = -1;
  OK(DRIVER(cuMemCreate)(&handle, 2 << 20, &properties, 0));
  OK(DRIVER(cuMemExportToShareableHandle)(&file, handle, properties.requestedHandleTypes, 0));
  OK(DRIVER(cuMemRelease)(handle));
  const auto descriptor = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
  OK(DRIVER(cuMemImportFromShareableHandle)(&handle, descriptor, properties.requestedHandleTypes));
  close(file);
  CHECK(free() == before - (2 << 20));
  OK(DRIVER(cuMemRelease)(handle));
  CHECK(free() == before);
}

}  // namespace
