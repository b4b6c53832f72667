// A memory pool by file descriptor, and its memory by data that a program copies: both processes write what the other one reads.
// conformance: flags=-lcuda judges=itself
#include <thread>

#include "descriptors.h"
#include "two_roles.h"

namespace {

constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr std::size_t kLarge = std::size_t{5} << 20, kSmall = 300;
constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};

CUmemoryPool makePool(CUmemAllocationHandleType type) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = type;
  properties.location = kDevice;
  CUmemoryPool pool = nullptr;
  EXPECT_OK(cuMemPoolCreate(&pool, &properties));
  return pool;
}

CUdeviceptr allocate(CUmemoryPool pool, std::size_t bytes, unsigned value) {
  CUdeviceptr address = 0;
  EXPECT_OK(cuMemAllocFromPoolAsync(&address, bytes, pool, nullptr));
  EXPECT_OK(cuMemsetD32Async(address, value, bytes / 4, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  return address;
}

void set(CUdeviceptr address, unsigned value) {
  EXPECT_OK(cuMemsetD32(address, value, 1));
  EXPECT_OK(cuCtxSynchronize());
}

void refuse() {
  const CUmemoryPool pool = makePool(CU_MEM_HANDLE_TYPE_NONE);
  const CUdeviceptr address = allocate(pool, kSmall, 1);
  CUmemPoolPtrExportData data{};
  int file = -1;
  EXPECT(cuMemPoolExportToShareableHandle(&file, pool, kFile, 0) != CUDA_SUCCESS);
  EXPECT(cuMemPoolExportPointer(&data, address) != CUDA_SUCCESS);
  EXPECT_OK(cuMemFree(address));
  EXPECT_OK(cuMemPoolDestroy(pool));
  int ends[2];
  if (::pipe(ends) != 0) _exit(2);
  CUmemoryPool made = nullptr;
  EXPECT(cuMemPoolImportFromShareableHandle(&made, asPointer(ends[0]), kFile, 0) != CUDA_SUCCESS);
  close(ends[0]);
  close(ends[1]);
}

void owner(const Processes& processes) {
  int types = 0;
  EXPECT_OK(cuDeviceGetAttribute(&types, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
  EXPECT((types & kFile) != 0);
  const CUmemoryPool pool = makePool(kFile);
  const CUdeviceptr large = allocate(pool, kLarge, 0x1111), small = allocate(pool, kSmall, 0x2222);
  int file = -1;
  EXPECT_OK(cuMemPoolExportToShareableHandle(&file, pool, kFile, 0));
  CUmemPoolPtrExportData first{}, second{};
  EXPECT_OK(cuMemPoolExportPointer(&first, large));
  // also on a thread without a context
  std::thread([&] { EXPECT_OK(cuMemPoolExportPointer(&second, small)); }).join();
  giveFile(processes, file);
  processes.send(first);
  processes.send(second);
  processes.meet();  // the other one has written
  EXPECT(valueAt(large + kLarge - 4) == 0x3333);
  EXPECT(valueAt(small + 4) == 0x4444);
  EXPECT(valueAt(small) == 0x2222);
  set(large, 0x5555);
  processes.meet();
  processes.meet();  // the other one has freed it
  EXPECT_OK(cuMemFreeAsync(large, nullptr));
  EXPECT_OK(cuMemFree(small));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_OK(cuMemPoolDestroy(pool));
  refuse();
  processes.meet();
}

void user(const Processes& processes) {
  const int file = takeFile(processes);
  auto first = processes.receive<CUmemPoolPtrExportData>();
  auto second = processes.receive<CUmemPoolPtrExportData>();
  CUmemoryPool pool = nullptr;
  EXPECT_OK(cuMemPoolImportFromShareableHandle(&pool, asPointer(file), kFile, 0));
  close(file);
  const CUmemAccessDesc access{kDevice, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_OK(cuMemPoolSetAccess(pool, &access, 1));
  CUdeviceptr large = 0, small = 0, none = 0;
  EXPECT_OK(cuMemPoolImportPointer(&large, pool, &first));
  EXPECT_OK(cuMemPoolImportPointer(&small, pool, &second));
  EXPECT(valueAt(large) == 0x1111 && valueAt(large + kLarge - 4) == 0x1111);
  EXPECT(valueAt(small) == 0x2222);
  EXPECT(cuMemAllocFromPoolAsync(&none, kSmall, pool, nullptr) != CUDA_SUCCESS);
  set(large + kLarge - 4, 0x3333);
  set(small + 4, 0x4444);
  processes.meet();
  processes.meet();
  EXPECT(valueAt(large) == 0x5555);
  EXPECT_OK(cuMemFreeAsync(large, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_OK(cuMemFree(small));
  EXPECT_OK(cuMemPoolDestroy(pool));
  processes.meet();
  processes.meet();
}

}  // namespace

int main() { return playRoles(owner, user); }
