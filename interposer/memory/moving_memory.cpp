#include "interposer/memory/moving_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "interposer/memory/host_memory.h"
#include "interposer/memory/managed_ranges.h"
#include "interposer/memory/moving_blocks.h"
#include "interposer/memory/page_faults.h"
#include "interposer/session/call.h"
#include "interposer/session/call_hooks.h"
#include "interposer/session/memory_file.h"
#include "wire/managed_move.h"

namespace interposer {

MovingState& movingState() {
  static auto* const instance = new MovingState;
  return *instance;
}

MovingPointer findMoving(std::uint64_t address) {
  const auto& all = movingState().all;
  auto next = all.upper_bound(address);
  if (next == all.begin() || address >= std::prev(next)->second->end) return nullptr;
  return std::prev(next)->second;
}

CUresult moveAllToGpu() { return moveToGpu(0, ~std::uint64_t{0}); }

namespace {

/// Smaller memory stays pinned: it is often polled or shared in ways that CUDA does not define.
constexpr std::size_t kLeastBytes = std::size_t{1} << 20;

/// Since the first allocation.
std::atomic<bool> anyMoves{false};

/// Calls body(first, last) for each run of blocks in [from, to) that are `held`.
template <class Body>
void eachRun(const Moving& memory, std::size_t from, std::size_t to, Held held, Body body) {
  for (std::size_t block = from; block < to;) {
    const std::size_t first = block;
    while (block < to && memory.blocks[block] == held) ++block;
    if (first < block) body(first, block);
    if (first == block) ++block;
  }
}

/// Call it under the mutex.
void noteHeld() {
  const auto& all = movingState().all;
  const bool any = std::any_of(all.begin(), all.end(), [](const auto& entry) {
    return entry.second->heldTo > 0 && entry.second->place != wire::ManagedPlace::pinned;
  });
  beforeWork.store(any ? moveAllToGpu : nullptr, std::memory_order_release);
}

/// Asks the worker where the GPU finds the memory.
CUresult askPlace(std::uint64_t address, bool pinned, wire::ManagedPlace& place) {
  Call call;
  if (!call.begin(CallNumber::placeManaged, 16, kUnordered)) return call.status();
  call.encoder().put(address);
  call.encoder().put<std::uint32_t>(pinned ? 1 : 0);
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) place = static_cast<wire::ManagedPlace>(reply.get<std::uint32_t>());
  return status;
}

/// From now on the program's pages and the GPU's are the same. Call it under the mutex.
void stayPinned(const Moving& memory) {
  unfollowPages(memory.begin, memory.end);
  auto range = findHostRange(memory.begin);
  if (!range) return;
  range->kind = HostKind::managed;
  addHostRange(*range);
}

/// Gives memory a place for the GPU. Call it with `sending` held.
CUresult place(Moving& memory, bool pinned) {
  {
    const std::lock_guard lock(movingState().mutex);
    if (memory.place != wire::ManagedPlace::none || memory.ending) return CUDA_SUCCESS;
    pinned = pinned || !followPages(memory.begin, memory.end);
  }
  wire::ManagedPlace found = wire::ManagedPlace::none;
  const CUresult status = askPlace(memory.begin, pinned, found);
  if (status != CUDA_SUCCESS) return status;
  const std::lock_guard lock(movingState().mutex);
  if (memory.ending) return CUDA_SUCCESS;
  memory.place = found;
  if (found == wire::ManagedPlace::pinned) stayPinned(memory);
  noteHeld();
  return CUDA_SUCCESS;
}

CUresult sendRanges(std::uint64_t address, std::span<const wire::AddressRange> ranges) {
  Call call;
  if (!call.begin(CallNumber::moveManagedToGpu, 32 + ranges.size_bytes(), kUnordered))
    return call.status();
  call.encoder().put(address);
  call.encoder().putBytes(ranges.data(), ranges.size_bytes());
  wire::Decoder reply;
  return call.wait(reply);
}

using Ranges = std::vector<wire::AddressRange>;

/// Takes the program's pages away. `written` gets those whose content the GPU lacks.
CUresult takeHeld(Moving& memory, std::uint64_t begin, std::uint64_t end, Ranges& written) {
  const std::lock_guard lock(movingState().mutex);
  if (memory.ending) return CUDA_SUCCESS;
  const std::size_t from = std::max(memory.heldFrom, memory.blockOf(std::max(begin, memory.begin)));
  const std::size_t to = std::min(memory.heldTo, memory.blockOf(std::min(end, memory.end) - 1) + 1);
  CUresult status = CUDA_SUCCESS;
  const auto take = [&](std::size_t first, std::size_t last, Held then) {
    if (!takePages(memory.at(first), memory.at(last)))
      return static_cast<void>(status = CUDA_ERROR_OPERATING_SYSTEM);
    memory.set(first, last, then);
    if (then == Held::submitted) written.push_back({memory.at(first), memory.at(last)});
  };
  eachRun(memory, from, to, Held::read,
          [&](std::size_t first, std::size_t last) { take(first, last, Held::gpu); });
  eachRun(memory, from, to, Held::written,
          [&](std::size_t first, std::size_t last) { take(first, last, Held::submitted); });
  if (status == CUDA_SUCCESS && from <= memory.heldFrom && to >= memory.heldTo)
    memory.heldFrom = memory.heldTo = 0;
  return status;
}

/// What the program has accessed meanwhile is its own again, as is all of it after an error.
void noteSent(Moving& memory, std::span<const wire::AddressRange> sent, CUresult status) {
  const std::lock_guard lock(movingState().mutex);
  for (const wire::AddressRange& range : sent) {
    eachRun(memory, memory.blockOf(range.begin), memory.blockOf(range.end - 1) + 1, Held::submitted,
            [&](std::size_t first, std::size_t last) {
              if (status == CUDA_SUCCESS)
                memory.set(first, last, Held::gpu);
              else
                memory.give(first, last, Held::written);
            });
  }
}

CUresult send(Moving& memory, std::uint64_t begin, std::uint64_t end) {
  CUresult status = place(memory, false);
  if (status != CUDA_SUCCESS || memory.place != wire::ManagedPlace::gpu) return status;
  Ranges written;
  status = takeHeld(memory, begin, end, written);
  for (std::size_t done = 0; done < written.size() && status == CUDA_SUCCESS;) {
    const std::size_t most = std::min(wire::kMostMoves, written.size() - done);
    status = sendRanges(memory.begin, {written.data() + done, most});
    done += most;
  }
  noteSent(memory, written, status);
  return status;
}

/// Whether no further work can use the memory.
bool hasEnded(const Moving& memory, CUresult status) {
  const std::lock_guard lock(movingState().mutex);
  return memory.ending || status == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/// The memory in a range, without what other threads free.
std::vector<MovingPointer> within(std::uint64_t begin, std::uint64_t end) {
  std::vector<MovingPointer> found;
  const std::lock_guard lock(movingState().mutex);
  for (const auto& [address, memory] : movingState().all) {
    if (!memory->ending && memory->begin < end && memory->end > begin) found.push_back(memory);
  }
  return found;
}

/// Maps the file and hands it to the worker.
CUresult share(std::uint64_t address, std::size_t bytes) {
  const int file = createMemoryFile(bytes);
  if (file < 0 || !wire::mapShared(address, bytes, file)) {
    if (file >= 0) close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  // as natively, a forked child has no managed memory
  madvise(reinterpret_cast<void*>(address), bytes, MADV_DONTFORK);
  const std::uint64_t id = Session::current()->sendMemory(file);
  close(file);
  Call call;
  if (!call.begin(CallNumber::allocateManaged, 24, kOrdered)) return call.status();
  call.encoder().put(id);
  call.encoder().put(address);
  call.encoder().put<std::uint64_t>(bytes);
  wire::Decoder reply;
  return call.wait(reply);
}

std::size_t wholePages(std::size_t bytes) { return (bytes + 4095) & ~std::size_t{4095}; }

/// Removes memory that the worker has freed.
void forget(const MovingPointer& memory) {
  removeHostRange(memory->begin);
  managedRanges().remove(memory->begin);
  {
    const std::lock_guard lock(movingState().mutex);
    movingState().all.erase(memory->begin);
    noteHeld();
    wire::unmapShared(memory->begin, memory->end - memory->begin);
  }
  Session::current()->window.release(memory->begin);
}

CUresult askFree(std::uint64_t address) {
  Call call;
  if (!call.begin(CallNumber::freeManaged, 8, kOrdered)) return call.status();
  call.encoder().put(address);
  wire::Decoder reply;
  return call.wait(reply);
}

/// Whether the worker has freed the memory, although askFree() has returned an error: that of an
/// earlier call.
bool isFreed(std::uint64_t address) {
  const CUresult again = askFree(address);
  return again == CUDA_SUCCESS || again == CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

bool canMove(std::size_t bytes) {
  return bytes >= kLeastBytes && Session::current()->devices().size() == 1 && faultsAnswered();
}

CUresult allocateMoving(std::size_t bytes, std::uint64_t& address) {
  wire::AddressWindow& window = Session::current()->window;
  const std::size_t mapped = wholePages(bytes);
  const std::uint64_t addresses = wire::managedAddresses(mapped);
  address = addresses >= bytes ? window.allocate(addresses, wire::kManagedUnit) : 0;
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = share(address, mapped); status != CUDA_SUCCESS) {
    wire::unmapShared(address, mapped);
    window.release(address);
    return status;
  }
  const auto memory = std::make_shared<Moving>(Moving{address, address + mapped});
  memory->blocks.resize((mapped + kMovingBlock - 1) / kMovingBlock);
  memory->give(0, memory->blocks.size(), Held::written);
  addHostRange({address, bytes, 0, HostKind::moving, Thread::current().context()});
  const std::lock_guard lock(movingState().mutex);
  movingState().all.emplace(address, memory);
  anyMoves.store(true, std::memory_order_relaxed);
  beforeWork.store(moveAllToGpu, std::memory_order_release);
  return CUDA_SUCCESS;
}

/// Meanwhile accesses are answered, and other threads submit work without this memory.
CUresult freeMoving(std::uint64_t address) {
  MovingPointer memory;
  {
    const std::lock_guard lock(movingState().mutex);
    memory = findMoving(address);
    if (memory == nullptr || memory->begin != address || std::exchange(memory->ending, true))
      return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult status = askFree(address);
  if (status == CUDA_SUCCESS || isFreed(address)) return forget(memory), status;
  const std::lock_guard lock(movingState().mutex);
  memory->ending = false;
  return status;
}

bool moves(std::uint64_t address) {
  if (!anyMoves.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(movingState().mutex);
  return findMoving(address) != nullptr;
}

bool isOnGpu(std::uint64_t address) {
  if (!moves(address)) return false;
  const std::lock_guard turn(movingState().sending);
  for (const MovingPointer& memory : within(address, address + 1))
    return place(*memory, false) == CUDA_SUCCESS && memory->place == wire::ManagedPlace::gpu;
  return false;
}

CUresult keepWithProgram(std::uint64_t address) {
  const std::lock_guard turn(movingState().sending);
  for (const MovingPointer& memory : within(address, address + 1)) return place(*memory, true);
  return CUDA_SUCCESS;
}

CUresult moveToGpu(std::uint64_t begin, std::uint64_t end) {
  const std::lock_guard turn(movingState().sending);
  CUresult failed = CUDA_SUCCESS;
  for (const MovingPointer& memory : within(begin, end)) {
    const CUresult status = send(*memory, begin, end);
    if (status != CUDA_SUCCESS && !hasEnded(*memory, status)) failed = status;
  }
  const std::lock_guard lock(movingState().mutex);
  noteHeld();
  return failed;
}

/// Reading them brings them back.
void moveToProgram(std::uint64_t begin, std::uint64_t end) {
  for (const MovingPointer& memory : within(begin, end)) {
    for (std::uint64_t at = std::max(begin, memory->begin); at < std::min(end, memory->end);
         at += 4096)
      static_cast<void>(*reinterpret_cast<volatile const char*>(at));
  }
}

}  // namespace interposer
