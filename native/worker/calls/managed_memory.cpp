// Managed memory that moves. Its pages lie with the GPU or with the program; the client tells which
// to copy. A client that lies gets wrong content of its own memory.
#include "native/worker/session/managed_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <functional>

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

using wire::ManagedPlace;
using Allocation = ManagedMemory::Allocation;

constexpr std::uint64_t kGpuPage = std::uint64_t{2} << 20;

std::uint64_t gpuBytes(const Allocation& memory) {
  return (memory.bytes + kGpuPage - 1) & ~(kGpuPage - 1);
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// Makes a context current while it lives, in calls that take no ticket.
class InContext {
 public:
  InContext(Thread& thread, CUcontext context)
      : driver_(thread.driver),
        relaxed_(thread.driver),
        status_(context == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                   : thread.driver.cuCtxPushCurrent_v2(context)) {}
  ~InContext() {
    CUcontext popped = nullptr;
    if (status_ == CUDA_SUCCESS) driver_.cuCtxPopCurrent_v2(&popped);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  CUresult status() const { return status_; }

 private:
  const Driver& driver_;
  const RelaxedCapture relaxed_;
  const CUresult status_;
};

void refundPinned(Thread& thread, std::uint64_t bytes) {
  thread.session.quota.refundPinned(bytes);
  discount(thread.session.figures.pinned, bytes);
}

/// Maps the file where the system likes, and pins it.
CUresult pin(Thread& thread, Allocation& memory, int file) {
  void* pages = mmap(nullptr, memory.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pages == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status =
      thread.driver.cuMemHostRegister_v2(pages, memory.bytes, CU_MEMHOSTREGISTER_PORTABLE);
  if (status != CUDA_SUCCESS) return munmap(pages, memory.bytes), status;
  memory.pages = static_cast<std::byte*>(pages);
  return CUDA_SUCCESS;
}

/// Nothing else may come to lie at addresses of the window.
void reserveAgain(Thread& thread, std::uint64_t address, std::uint64_t bytes) {
  if (!wire::reserve({address, address + bytes}))
    thread.session.fail("the address of the program's managed memory is taken in the worker");
}

/// Gives back what reserve() and back() took.
void leaveGpu(Thread& thread, std::uint64_t address, std::uint64_t bytes) {
  cuMemUnmap(thread, address, (bytes + kGpuPage - 1) & ~(kGpuPage - 1));
  cuMemAddressFree(thread, address, wire::managedAddresses(bytes));
  reserveAgain(thread, address, wire::managedAddresses(bytes));
}

/// Reserves exactly these addresses with the driver, which needs them unmapped.
bool reserve(Thread& thread, std::uint64_t address, std::uint64_t bytes) {
  munmap(pointer(address), bytes);
  CUdeviceptr got = 0;
  const CUresult status = cuMemAddressReserve(thread, &got, bytes, 0, address, 0);
  if (status == CUDA_SUCCESS && got == address) return true;
  if (status == CUDA_SUCCESS) cuMemAddressFree(thread, got, bytes);
  reserveAgain(thread, address, bytes);
  return false;
}

/// Maps GPU memory at reserved addresses. It stays charged while it is mapped.
bool back(Thread& thread, std::uint64_t address, const Allocation& memory) {
  const std::uint64_t bytes = gpuBytes(memory);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, memory.device};
  CUmemGenericAllocationHandle handle = 0;
  if (cuMemCreate(thread, &handle, bytes, &properties, 0) != CUDA_SUCCESS) return false;
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const bool done = cuMemMap(thread, address, bytes, 0, handle, 0) == CUDA_SUCCESS &&
                    cuMemSetAccess(thread, address, bytes, &access, 1) == CUDA_SUCCESS;
  cuMemRelease(thread, handle);
  return done;
}

/// A stream that waits for no other one, shared by the moves of the context.
bool openStream(Thread& thread, Allocation& memory) {
  CUstream& stream = thread.session.managed.streams[memory.context];
  if (stream == nullptr)
    thread.session.streams.make(memory.context, &stream, [&] {
      return thread.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    });
  memory.stream = stream;
  return stream != nullptr;
}

/// Asks the quota before, so that memory which does not fit is not reported as refused.
bool placeOnGpu(Thread& thread, std::uint64_t address, Allocation& memory) {
  Quota& quota = thread.session.quota;
  if (!quota.tryCharge(gpuBytes(memory))) return false;
  quota.refund(gpuBytes(memory));
  if (!openStream(thread, memory) ||
      !reserve(thread, address, wire::managedAddresses(memory.bytes)))
    return false;
  if (back(thread, address, memory)) return true;
  leaveGpu(thread, address, memory.bytes);
  return false;
}

/// The GPU reaches the program's own pages, at the same address.
CUresult placeInHostMemory(Thread& thread, std::uint64_t address, const Allocation& memory) {
  if (!thread.session.shared.mapAside(address, memory.bytes, memory.pages))
    return CUDA_ERROR_OUT_OF_MEMORY;
  return thread.driver.cuMemHostRegister_v2(
      pointer(address), memory.bytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
}

CUresult place(Thread& thread, std::uint64_t address, Allocation& memory, bool pinned) {
  if (memory.place != ManagedPlace::none) return CUDA_SUCCESS;
  const InContext current(thread, memory.context);
  if (current.status() != CUDA_SUCCESS) return current.status();
  if (!pinned && placeOnGpu(thread, address, memory)) {
    memory.place = ManagedPlace::gpu;
    return CUDA_SUCCESS;
  }
  memory.place = ManagedPlace::pinned;
  return placeInHostMemory(thread, address, memory);
}

/// Calls `copy` and waits for the copies in the allocation's stream.
CUresult move(Thread& thread, const Allocation& memory, const std::function<CUresult()>& copy) {
  thread.passTicket(memory.context);
  const InContext current(thread, memory.context);
  if (current.status() != CUDA_SUCCESS) return current.status();
  const CUresult status = copy();
  const CUresult waited = thread.driver.cuStreamSynchronize(memory.stream);
  return status != CUDA_SUCCESS ? status : waited;
}

/// Waits for the GPU, while other threads may move memory.
void awaitGpu(Thread& thread, CUcontext context) {
  thread.passTicket(context);
  const InContext current(thread, context);
  if (current.status() == CUDA_SUCCESS) thread.driver.cuCtxSynchronize();
}

/// Ends the driver's use of the program's pages. If the driver refuses, the GPU may still use them.
CUresult unpin(Thread& thread, std::uint64_t address, const Allocation& memory) {
  const InContext current(thread, memory.context);
  if (memory.place == ManagedPlace::pinned) thread.driver.cuMemHostUnregister(pointer(address));
  const CUresult status = thread.driver.cuMemHostUnregister(memory.pages);
  const bool ended = memory.context == nullptr || status == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  return ended ? CUDA_SUCCESS : status;
}

CUcontext contextOf(ManagedMemory& managed, std::uint64_t address) {
  const std::lock_guard lock(managed.mutex);
  const Allocation* memory = managed.find(address);
  return memory == nullptr ? nullptr : memory->context;
}

}  // namespace

/// The client has made the memory file, and has it mapped at the address.
CUresult allocateManaged(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto id = in.get<std::uint64_t>();
  const auto address = in.get<std::uint64_t>();
  const auto bytes = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  Allocation memory;
  memory.bytes = bytes;
  memory.context = thread.owner();
  if (memory.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  thread.driver.cuCtxGetDevice(&memory.device);
  SharedMemory& shared = thread.session.shared;
  const std::uint64_t addresses = wire::managedAddresses(bytes);
  if (address % wire::kManagedUnit != 0 || addresses < bytes) return CUDA_ERROR_INVALID_VALUE;
  const int file = shared.setAside(id, address, bytes, addresses);
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  const bool fits = thread.session.pinnedFits(bytes);
  const CUresult status = fits ? pin(thread, memory, file) : CUDA_ERROR_OUT_OF_MEMORY;
  close(file);
  if (status != CUDA_SUCCESS) {
    if (fits) refundPinned(thread, bytes);
    shared.unmap(address);
    return status;
  }
  const std::lock_guard lock(thread.session.managed.mutex);
  thread.session.managed.allocations.emplace(address, memory);
  return CUDA_SUCCESS;
}

/// Gives the memory a place for the GPU, if it has none. Replies with the place.
CUresult placeManaged(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto address = in.get<std::uint64_t>();
  const bool pinned = in.get<std::uint32_t>() != 0;
  if (!in.finished()) return thread.refuseFrame();
  const std::lock_guard lock(thread.session.managed.mutex);
  Allocation* memory = thread.session.managed.find(address);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = place(thread, address, *memory, pinned);
  out.put(static_cast<std::uint32_t>(memory->place));
  return status;
}

CUresult moveManagedToGpu(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  const auto ranges = in.getArray<wire::AddressRange>(wire::kMostMoves);
  if (!in.finished()) return thread.refuseFrame();
  ManagedMemory& managed = thread.session.managed;
  const std::lock_guard lock(managed.mutex);
  Allocation* memory = managed.find(address);
  if (memory == nullptr || memory->place != ManagedPlace::gpu) return CUDA_ERROR_INVALID_VALUE;
  return move(thread, *memory, [&] {
    CUresult status = CUDA_SUCCESS;
    for (const wire::AddressRange& range : ranges) {
      if (managed.find(address, range.begin, range.end) == nullptr) return CUDA_ERROR_INVALID_VALUE;
      const std::uint64_t bytes = range.end - range.begin;
      const CUresult copied = thread.driver.cuMemcpyHtoDAsync_v2(
          range.begin, memory->pages + (range.begin - address), bytes, memory->stream);
      if (status == CUDA_SUCCESS) status = copied;
      count(thread.session.figures.bytesHostToDevice, bytes);
    }
    return status;
  });
}

CUresult moveManagedToHost(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  const auto range = in.get<wire::AddressRange>();
  if (!in.finished()) return thread.refuseFrame();
  ManagedMemory& managed = thread.session.managed;
  const std::lock_guard lock(managed.mutex);
  Allocation* memory = managed.find(address, range.begin, range.end);
  if (memory == nullptr || memory->place != ManagedPlace::gpu) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t bytes = range.end - range.begin;
  count(thread.session.figures.bytesDeviceToHost, bytes);
  return move(thread, *memory, [&] {
    return thread.driver.cuMemcpyDtoHAsync_v2(memory->pages + (range.begin - address), range.begin,
                                              bytes, memory->stream);
  });
}

CUresult freeManaged(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  ManagedMemory& managed = thread.session.managed;
  awaitGpu(thread, contextOf(managed, address));
  const std::lock_guard lock(managed.mutex);
  Allocation* memory = managed.find(address);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = unpin(thread, address, *memory); status != CUDA_SUCCESS)
    return status;
  if (memory->place == ManagedPlace::gpu) leaveGpu(thread, address, memory->bytes);
  munmap(memory->pages, memory->bytes);
  thread.session.shared.unmap(address);
  refundPinned(thread, memory->bytes);
  managed.allocations.erase(address);
  return CUDA_SUCCESS;
}

}  // namespace worker
