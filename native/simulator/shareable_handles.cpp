// Memory and pools of other processes, by file descriptor.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "native/simulator/allocations.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"
#include "native/simulator/pool.h"
#include "native/simulator/shared_memory.h"
#include "native/simulator/virtual_memory.h"
#include "wire/anonymous_file.h"

namespace simulator {
namespace {

/// At the end of a shared file of memory, and the content of the file of a pool.
struct Description {
  static constexpr std::uint32_t kMemory = 0x4d464953;
  static constexpr std::uint32_t kPool = 0x50464953;

  std::uint32_t magic;
  std::int32_t device;    ///< index among all simulated GPUs
  std::uint64_t process;  ///< whose driver is charged for memory
  std::uint64_t size;
  CUmemAllocationProp properties;
};

/// Of this process. Its number could be that of another one in another namespace.
std::uint64_t processName() {
  static const std::uint64_t name = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return name;
}

bool describe(int file, std::uint64_t offset, const Description& description) {
  return pwrite(file, &description, sizeof description, static_cast<off_t>(offset)) ==
         sizeof description;
}

/// Reads the end of the file. The magic is 0 if that is no description.
Description descriptionOf(int file) {
  struct stat status {};
  Description found{};
  constexpr off_t kBytes = sizeof found;
  const bool read = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                    status.st_size >= kBytes &&
                    pread(file, &found, sizeof found, status.st_size - kBytes) == kBytes;
  const auto before = static_cast<std::uint64_t>(read ? status.st_size - kBytes : 0);
  return read && found.size == before ? found : Description{};
}

/// What imports accept: types that this driver does not have are refused before.
CUresult checkImport(const void* result, CUmemAllocationHandleType type) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/// A descriptor travels in the pointer itself.
int descriptorIn(void* handle) { return static_cast<int>(reinterpret_cast<std::intptr_t>(handle)); }

CUresult giveDescriptor(int file, void* result) {
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  std::memcpy(result, &file, sizeof file);
  return CUDA_SUCCESS;
}

}  // namespace

bool describeFile(const Physical& physical) {
  Description description{Description::kMemory, physical.device.index, processName(), physical.size,
                          physical.properties};
  description.properties.win32HandleMetaData = nullptr;
  return describe(physical.file, physical.size, description);
}

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuMemExportToShareableHandle(void* shareableHandle, CUmemGenericAllocationHandle handle,
                                         CUmemAllocationHandleType handleType,
                                         unsigned long long flags) {
  return inDriver([&]() -> CUresult {
    const auto physical = findPhysical(handle);
    if (shareableHandle == nullptr || physical == nullptr || flags != 0 ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        physical->properties.requestedHandleTypes != handleType)
      return CUDA_ERROR_INVALID_VALUE;
    return giveDescriptor(fcntl(physical->file, F_DUPFD_CLOEXEC, 0), shareableHandle);
  });
}

DRIVER_CALL cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* osHandle,
                                           CUmemAllocationHandleType shHandleType) {
  return inDriver([&]() -> CUresult {
    if (const CUresult status = checkImport(handle, shHandleType); status != CUDA_SUCCESS)
      return status;
    const int given = descriptorIn(osHandle);
    const Description found = descriptionOf(given);
    if (found.magic != Description::kMemory) return CUDA_ERROR_INVALID_VALUE;
    Device* device = deviceWithIndex(found.device);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (auto own = physicalIn(given)) return *handle = addPhysical(std::move(own)), CUDA_SUCCESS;
    // The last handle of its own memory may have ended; the file kept the memory.
    const bool charged = found.process == processName();
    if (charged && !device->charge(found.size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const int file = fcntl(given, F_DUPFD_CLOEXEC, 0);
    if (file < 0) {
      if (charged) device->release(found.size);
      return CUDA_ERROR_OPERATING_SYSTEM;
    }
    auto physical = std::make_shared<Physical>(*device, found.size, file, charged);
    physical->properties = found.properties;
    physical->properties.location.id = device->ordinal;
    *handle = addPhysical(std::move(physical));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool pool,
                                             CUmemAllocationHandleType handleType,
                                             unsigned long long flags) {
  return inDriver([&]() -> CUresult {
    const auto found = Handles<Pool>::all().find(pool);
    if (handle_out == nullptr || found == nullptr || flags != 0 || !found->shareable ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
      return CUDA_ERROR_INVALID_VALUE;
    const int file = wire::createAnonymousFile("simulated-gpu-pool", MFD_CLOEXEC);
    if (file >= 0 && !describe(file, 0, {Description::kPool, found->device.index, 0, 0, {}}))
      return close(file), CUDA_ERROR_OPERATING_SYSTEM;
    return giveDescriptor(file, handle_out);
  });
}

DRIVER_CALL cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle,
                                               CUmemAllocationHandleType handleType,
                                               unsigned long long flags) {
  return inDriver([&]() -> CUresult {
    if (const CUresult status = checkImport(pool_out, handleType); status != CUDA_SUCCESS)
      return status;
    const Description found = descriptionOf(descriptorIn(handle));
    if (found.magic != Description::kPool || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Device* device = deviceWithIndex(found.device);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    auto made = std::make_shared<Pool>(*device, false);
    made->imported = true;
    *pool_out = handleOf<CUmemoryPool>(made.get());
    Handles<Pool>::all().add(std::move(made));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemPoolExportPointer(CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr) {
  return inDriver([&]() -> CUresult {
    const auto found = Allocations::all().find(ptr);
    if (shareData_out == nullptr || !found || found->begin != ptr || found->freeing ||
        found->kind != MemoryKind::pool || !found->pool->shareable)
      return CUDA_ERROR_INVALID_VALUE;
    ExportedMemory name{};
    const CUresult status = exportMemory(*found, name);
    if (status == CUDA_SUCCESS) std::memcpy(shareData_out, &name, sizeof name);
    return status;
  });
}

DRIVER_CALL cuMemPoolImportPointer(CUdeviceptr* ptr_out, CUmemoryPool pool,
                                   CUmemPoolPtrExportData* shareData) {
  return inDriver([&]() -> CUresult {
    auto from = Handles<Pool>::all().find(pool);
    if (ptr_out == nullptr || shareData == nullptr || from == nullptr || !from->imported)
      return CUDA_ERROR_INVALID_VALUE;
    ExportedMemory name{};
    std::memcpy(&name, shareData, sizeof name);
    if (name.magic != ExportedMemory::kPoolMagic) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t address = 0;
    const CUresult status = importMemory(nullptr, std::move(from), name, address);
    if (status == CUDA_SUCCESS) *ptr_out = address;
    return status;
  });
}
