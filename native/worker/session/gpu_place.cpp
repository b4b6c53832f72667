#include "native/worker/session/gpu_place.h"

#include <sys/mman.h>

#include <utility>

#include "native/worker/accounts/page_tables.h"
#include "wire/address_window.h"
#include "wire/managed_move.h"

namespace worker {

namespace {

constexpr std::uint64_t kGpuPage = std::uint64_t{2} << 20;

}  // namespace

/// Nothing else may come to lie at addresses of the window.
void GpuPlace::keepReserved(std::uint64_t bytes) {
  lost_ = !wire::reserve({address_, address_ + bytes});
}

/// The driver needs the addresses unmapped.
bool GpuPlace::reserve(const Driver& driver, std::uint64_t bytes) {
  munmap(reinterpret_cast<void*>(address_), bytes);
  CUdeviceptr got = 0;
  const CUresult status = driver.cuMemAddressReserve(&got, bytes, 0, address_, 0);
  if (status == CUDA_SUCCESS && got == address_) return reserved_ = bytes, true;
  if (status == CUDA_SUCCESS) driver.cuMemAddressFree(got, bytes);
  keepReserved(bytes);
  return false;
}

CUresult GpuPlace::back(const Driver& driver, std::uint64_t bytes, CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemGenericAllocationHandle handle = 0;
  CUresult status = driver.cuMemCreate(&handle, bytes, &properties, 0);
  if (status != CUDA_SUCCESS) return status;
  status = driver.cuMemMap(address_, bytes, 0, handle, 0);
  if (status == CUDA_SUCCESS) mapped_ = bytes;
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (status == CUDA_SUCCESS) status = driver.cuMemSetAccess(address_, bytes, &access, 1);
  const CUresult released = driver.cuMemRelease(handle);
  if (released == CUDA_SUCCESS) return status;
  charged_ = 0;  // the memory never ends, so it stays charged
  return released;
}

CUresult GpuPlace::take(const Driver& driver, Quota& quota, std::uint64_t address,
                        std::uint64_t bytes, CUdevice device) {
  const std::uint64_t memory = (bytes + kGpuPage - 1) & ~(kGpuPage - 1);
  const std::uint64_t addresses = wire::managedAddresses(bytes);
  const std::uint64_t cost = memory + pageTables(addresses);
  // without a report: the memory then stays where it is
  if (!quota.tryCharge(cost)) return CUDA_ERROR_OUT_OF_MEMORY;
  address_ = address;
  charged_ = cost;
  if (!reserve(driver, addresses)) {
    quota.refund(std::exchange(charged_, 0));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult status = back(driver, memory, device);
  if (status != CUDA_SUCCESS) leave(driver, quota);
  return status;
}

CUresult GpuPlace::leave(const Driver& driver, Quota& quota) {
  if (mapped_ > 0) {
    const CUresult status = driver.cuMemUnmap(address_, mapped_);
    if (status != CUDA_SUCCESS) return status;
    mapped_ = 0;
  }
  if (reserved_ > 0) {
    const CUresult status = driver.cuMemAddressFree(address_, reserved_);
    if (status != CUDA_SUCCESS) return status;
    quota.refund(std::exchange(charged_, 0));
    keepReserved(std::exchange(reserved_, 0));
  }
  return lost_ ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

}  // namespace worker
