// Registration of shared mappings: a memory file, a file in a directory, POSIX shared memory; other mappings of the file see what the device writes.
// conformance: judges=itself flags=-lrt
#include <fcntl.h>

#include <string>

#include "host_register.h"

constexpr int count = 20'000;
constexpr std::size_t bytes = 20 * page;

static int* map(int file, std::size_t offset, int rights = PROT_READ | PROT_WRITE) {
  void* mapped = mmap(nullptr, bytes, rights, MAP_SHARED, file, static_cast<off_t>(offset));
  EXPECT(mapped != MAP_FAILED);
  return static_cast<int*>(mapped);
}

/// `close` before the registration, as programs do that keep only the mapping.
static void share(int file, bool closed) {
  EXPECT(file >= 0 && ftruncate(file, bytes + 2 * page) == 0);
  int* data = map(file, page);
  int* other = map(file, page);
  if (closed) close(file);
  EXPECT_OK(cudaHostRegister(data, bytes, cudaHostRegisterDefault));
  useRegistered(data, count);
  EXPECT(other[0] == 12 && other[count - 1] == count - 1 + 12);
  other[3] = 500;
  addToAll<<<1, 32>>>(data, 4, 1);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(data[3] == 501 && other[3] == 501);
  EXPECT_OK(cudaHostUnregister(data));
  data[4] = 600;
  EXPECT(other[4] == 600);  // still shared
  munmap(data, bytes);
  munmap(other, bytes);
  if (!closed) close(file);
}

/// Two registrations of one mapping that share a page.
static void parts(int file) {
  EXPECT(ftruncate(file, bytes) == 0);
  int* data = map(file, 0);
  EXPECT_OK(cudaHostRegister(data, 3 * page, cudaHostRegisterDefault));
  EXPECT_OK(cudaHostRegister(data + 10 * page / 4, 5 * page, cudaHostRegisterDefault));
  addToAll<<<1, 256>>>(data, 256, 1);
  addToAll<<<1, 256>>>(data + 10 * page / 4, 256, 2);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(data[0] == 1 && data[10 * page / 4] == 2);
  EXPECT_OK(cudaHostUnregister(data));
  EXPECT_OK(cudaHostUnregister(data + 10 * page / 4));
  munmap(data, bytes);
  close(file);
}

/// Read-only memory needs the flag, which the device may not support.
static void readOnly(int file) {
  int supported = 0;
  EXPECT_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrHostRegisterReadOnlySupported, 0));
  EXPECT(ftruncate(file, bytes) == 0);
  int* writable = map(file, 0);
  for (int i = 0; i < count; ++i) writable[i] = 3 * i;
  int* data = map(file, 0, PROT_READ);
  std::printf("read only without the flag: %s\n", resultName(cudaHostRegister(data, bytes, cudaHostRegisterDefault)));
  cudaGetLastError();
  const cudaError_t result = cudaHostRegister(data, bytes, cudaHostRegisterReadOnly);
  EXPECT(result == (supported ? cudaSuccess : cudaErrorNotSupported));
  if (result == cudaSuccess) {
    int* device = nullptr;
    int* sum = nullptr;
    EXPECT_OK(cudaMalloc(&device, bytes));
    EXPECT_OK(cudaMallocHost(&sum, bytes));
    EXPECT_OK(cudaMemcpy(device, data, bytes, cudaMemcpyHostToDevice));
    EXPECT_OK(cudaMemcpy(sum, device, bytes, cudaMemcpyDeviceToHost));
    EXPECT(sum[count - 1] == 3 * (count - 1));
    EXPECT_OK(cudaHostUnregister(data));
    EXPECT_OK(cudaFree(device));
    EXPECT_OK(cudaFreeHost(sum));
  }
  cudaGetLastError();
  munmap(data, bytes);
  munmap(writable, bytes);
  close(file);
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  share(memfd_create("host-register", MFD_CLOEXEC), false);
  const std::string name = "/host-register-" + std::to_string(getpid());
  share(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600), true);
  shm_unlink(name.c_str());
  parts(memfd_create("host-register", MFD_CLOEXEC));
  readOnly(memfd_create("host-register", MFD_CLOEXEC));
  return verdict();
}
