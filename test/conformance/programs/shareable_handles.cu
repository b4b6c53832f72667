// Memory of cuMemCreate by file descriptor: both processes write what the other one reads; it outlives its creator's use, and descriptors that lead to no memory are refused.
// conformance: flags=-lcuda judges=itself
#include "descriptors.h"
#include "two_roles.h"

namespace {

constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemAllocationProp shareable() {
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  property.requestedHandleTypes = kFile;
  return property;
}

std::size_t pageBytes() {
  const CUmemAllocationProp property = shareable();
  std::size_t bytes = 0;
  EXPECT_OK(cuMemGetAllocationGranularity(&bytes, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return bytes;
}

/// Maps the memory, and checks that access is refused before it is granted.
CUdeviceptr map(CUmemGenericAllocationHandle memory, std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_OK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
  EXPECT_OK(cuMemMap(address, bytes, 0, memory, 0));
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  unsigned long long flags = 77;
  EXPECT_OK(cuMemGetAccess(&flags, &access.location, address));
  EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EXPECT_OK(cuMemSetAccess(address, bytes, &access, 1));
  EXPECT_OK(cuMemGetAccess(&flags, &access.location, address));
  EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  return address;
}

void unmap(CUdeviceptr address, std::size_t bytes) {
  EXPECT_OK(cuMemUnmap(address, bytes));
  EXPECT_OK(cuMemAddressFree(address, bytes));
}

void set(CUdeviceptr address, unsigned value) {
  EXPECT_OK(cuMemsetD32(address, value, 1));
  EXPECT_OK(cuCtxSynchronize());
}

int exported(CUmemGenericAllocationHandle memory) {
  int file = -1;
  EXPECT_OK(cuMemExportToShareableHandle(&file, memory, kFile, 0));
  EXPECT(file >= 0);
  return file;
}

CUmemGenericAllocationHandle imported(int file) {
  CUmemGenericAllocationHandle memory = 0;
  EXPECT_OK(cuMemImportFromShareableHandle(&memory, asPointer(file), kFile));
  return memory;
}

void refuse() {
  CUmemGenericAllocationHandle memory = 0, made = 0;
  int ends[2];
  if (pipe(ends) != 0) _exit(2);
  EXPECT(cuMemImportFromShareableHandle(&made, asPointer(ends[0]), kFile) != CUDA_SUCCESS);
  close(ends[0]);
  EXPECT(cuMemImportFromShareableHandle(&made, asPointer(ends[0]), kFile) != CUDA_SUCCESS);
  EXPECT(cuMemImportFromShareableHandle(&made, asPointer(-1), kFile) != CUDA_SUCCESS);
  close(ends[1]);
  CUmemAllocationProp property = shareable();
  property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  int file = -1;
  EXPECT_OK(cuMemCreate(&memory, pageBytes(), &property, 0));
  EXPECT(cuMemExportToShareableHandle(&file, memory, kFile, 0) != CUDA_SUCCESS);
  EXPECT_OK(cuMemRelease(memory));
}

void owner(const Processes& processes) {
  int supported = 0;
  EXPECT_OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
  EXPECT(supported == 1);
  const std::size_t bytes = 2 * pageBytes();
  const CUmemAllocationProp property = shareable();
  CUmemGenericAllocationHandle memory = 0;
  EXPECT_OK(cuMemCreate(&memory, bytes, &property, 0));
  const CUdeviceptr address = map(memory, bytes);
  set(address, 0x1111);
  set(address + bytes - 4, 0x2222);
  const int first = exported(memory), second = exported(memory);
  EXPECT(first != second);
  const int copy = dup(second);
  close(second);
  giveFile(processes, first);  // closed here before the other one imports it
  processes.meet();            // the other one has written
  EXPECT(valueAt(address + 4) == 0x3333);

  const CUmemGenericAllocationHandle own = imported(copy);
  const CUdeviceptr other = map(own, bytes);
  EXPECT(valueAt(other + 4) == 0x3333);
  set(other + 8, 0x4444);
  EXPECT(valueAt(address + 8) == 0x4444);
  unmap(other, bytes);
  EXPECT_OK(cuMemRelease(own));
  processes.meet();  // the other one reads it

  EXPECT_OK(cuMemRelease(memory));
  unmap(address, bytes);
  close(copy);
  processes.meet();
  refuse();
  processes.meet();
}

void user(const Processes& processes) {
  const std::size_t bytes = 2 * pageBytes();
  const int file = takeFile(processes);
  const CUmemGenericAllocationHandle memory = imported(file), again = imported(file);
  close(file);
  const CUdeviceptr address = map(memory, bytes), second = map(again, bytes);
  EXPECT_OK(cuMemRelease(again));
  EXPECT(valueAt(address) == 0x1111);
  EXPECT(valueAt(second + bytes - 4) == 0x2222);
  set(second + 4, 0x3333);
  EXPECT(valueAt(address + 4) == 0x3333);
  CUmemAllocationProp found{};
  EXPECT_OK(cuMemGetAllocationPropertiesFromHandle(&found, memory));
  EXPECT(found.type == CU_MEM_ALLOCATION_TYPE_PINNED && found.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  processes.meet();
  processes.meet();
  EXPECT(valueAt(address + 8) == 0x4444);
  unmap(second, bytes);
  processes.meet();  // the creator has let go of it
  EXPECT(valueAt(address) == 0x1111);
  set(address, 0x5555);
  EXPECT_OK(cuMemRelease(memory));
  EXPECT(valueAt(address) == 0x5555);
  unmap(address, bytes);
  processes.meet();
}

}  // namespace

int main() { return playRoles(owner, user); }
