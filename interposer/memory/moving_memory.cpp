#include "interposer/memory/moving_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "interposer/memory/host_memory.h"
#include "interposer/memory/page_faults.h"
#include "interposer/session/call.h"
#include "interposer/session/call_hooks.h"
#include "interposer/session/callback.h"
#include "interposer/session/memory_file.h"
#include "wire/managed_move.h"

namespace interposer {

namespace {

/// Smaller memory stays pinned: it is often polled or shared in ways that CUDA does not define.
constexpr std::size_t kLeastBytes = std::size_t{1} << 20;
constexpr std::uint64_t kBlock = 64 << 10;
/// Maximum number of blocks that one access brings back, if accesses come in order.
constexpr std::size_t kMostBlocks = 32;

enum class Held : std::uint8_t {
  gpu,        ///< absent here
  read,       ///< both have it; read-only here
  written,    ///< the program has it
  submitted,  ///< absent here; on the way to the GPU, the file still has it
};

struct Moving {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  wire::ManagedPlace place = wire::ManagedPlace::none;
  std::vector<Held> blocks{};
  std::size_t next = 0;  ///< block behind those that came last, and
  std::size_t run = 1;   ///< how many came
  /// All blocks that the program holds are among [heldFrom, heldTo).
  std::size_t heldFrom = 0;
  std::size_t heldTo = 0;

  std::uint64_t at(std::size_t block) const { return std::min(begin + block * kBlock, end); }
  std::size_t blockOf(std::uint64_t address) const { return (address - begin) / kBlock; }
  void give(std::size_t first, std::size_t last, Held as) {
    std::fill(blocks.begin() + first, blocks.begin() + last, as);
    heldFrom = heldTo == 0 ? first : std::min(heldFrom, first);
    heldTo = std::max(heldTo, last);
  }
};
using MovingPointer = std::shared_ptr<Moving>;

/// Since the first allocation.
std::atomic<bool> anyMoves{false};

struct State {
  /// Held by those that send pages to the GPU, which may wait for calls of other threads.
  std::mutex sending;
  /// Never held during a call that other threads could delay: these may wait for a page.
  std::mutex mutex;
  std::map<std::uint64_t, MovingPointer> all;
};

State& state() {
  static auto* const instance = new State;
  return *instance;
}

/// The memory around an address; null: none.
MovingPointer find(std::uint64_t address) {
  const auto& all = state().all;
  auto next = all.upper_bound(address);
  if (next == all.begin() || address >= std::prev(next)->second->end) return nullptr;
  return std::prev(next)->second;
}

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

void moveAllToGpu() { moveToGpu(0, ~std::uint64_t{0}); }

/// Call it under the mutex.
void noteHeld() {
  const bool any = std::any_of(state().all.begin(), state().all.end(), [](const auto& entry) {
    return entry.second->heldTo > 0 && entry.second->place != wire::ManagedPlace::pinned;
  });
  beforeWork.store(any ? moveAllToGpu : nullptr, std::memory_order_release);
}

CUresult bringBack(const Moving& memory, std::size_t first, std::size_t last) {
  Call call;
  if (!call.begin(CallNumber::moveManagedToHost, 24, kUnordered)) return call.status();
  call.encoder().put(memory.begin);
  call.encoder().put(wire::AddressRange{memory.at(first), memory.at(last)});
  wire::Decoder reply;
  return call.wait(reply);
}

/// A program that goes through its memory gets more at a time.
std::size_t blocksFor(Moving& memory, std::size_t block) {
  memory.run = block == memory.next ? std::min(memory.run * 2, kMostBlocks) : 1;
  std::size_t last = block;
  while (last < memory.blocks.size() && last < block + memory.run &&
         memory.blocks[last] == memory.blocks[block])
    ++last;
  return memory.next = last;
}

void answer(Moving& memory, const PageFault& fault) {
  const std::size_t block = memory.blockOf(fault.address);
  const Held before = memory.blocks[block];
  const std::size_t last = blocksFor(memory, block);
  const std::uint64_t begin = memory.at(block), end = memory.at(last);
  if (before == Held::gpu && bringBack(memory, block, last) != CUDA_SUCCESS)
    return losePages(begin, end);
  const bool writable = fault.writes || before == Held::written;
  memory.give(block, last, writable ? Held::written : Held::read);
  // before the thread continues, which may submit work at once
  beforeWork.store(moveAllToGpu, std::memory_order_release);
  if (fault.isProtected)
    letWritePages(begin, end);
  else
    givePages(begin, end, writable);
}

/// Its calls take no place in the order of the program's calls, so it waits for no other thread.
void* answerFaults(void* opened) {
  Thread::current().openChannel(*static_cast<Session*>(opened));
  PageFault fault;
  while (awaitPageFault(fault)) {
    const std::lock_guard lock(state().mutex);
    if (const MovingPointer memory = find(fault.address))
      answer(*memory, fault);
    else
      wakePages(fault.address & ~(kBlock - 1), (fault.address & ~(kBlock - 1)) + kBlock);
  }
  return nullptr;
}

bool faultsAnswered() {
  static const bool answered = [] {
    if (!openPageFaults(Session::current()->faultDevice())) return false;
    startThread(answerFaults, Session::current());
    return true;
  }();
  return answered;
}

/// Asks the worker where the GPU finds the memory.
wire::ManagedPlace askPlace(std::uint64_t address, bool pinned) {
  Call call;
  if (!call.begin(CallNumber::placeManaged, 16, kUnordered)) return wire::ManagedPlace::none;
  call.encoder().put(address);
  call.encoder().put<std::uint32_t>(pinned ? 1 : 0);
  wire::Decoder reply;
  if (call.wait(reply) != CUDA_SUCCESS) return wire::ManagedPlace::none;
  return static_cast<wire::ManagedPlace>(reply.get<std::uint32_t>());
}

/// Gives memory a place for the GPU. Call it with `sending` held.
void place(Moving& memory, bool pinned) {
  if (memory.place != wire::ManagedPlace::none) return;
  const wire::ManagedPlace found =
      askPlace(memory.begin, pinned || !followPages(memory.begin, memory.end));
  const std::lock_guard lock(state().mutex);
  memory.place = found;
  noteHeld();
  if (found != wire::ManagedPlace::pinned) return;
  unfollowPages(memory.begin, memory.end);
  auto range = findHostRange(memory.begin);
  if (!range) return;
  range->kind = HostKind::managed;
  addHostRange(*range);
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

/// Takes the program's pages away. Returns what it has written of them.
std::vector<wire::AddressRange> takeHeld(Moving& memory, std::uint64_t begin, std::uint64_t end) {
  std::vector<wire::AddressRange> written;
  const std::lock_guard lock(state().mutex);
  const std::size_t from = std::max(memory.heldFrom, memory.blockOf(std::max(begin, memory.begin)));
  const std::size_t to = std::min(memory.heldTo, memory.blockOf(std::min(end, memory.end) - 1) + 1);
  const auto take = [&](std::size_t first, std::size_t last, Held then) {
    takePages(memory.at(first), memory.at(last));
    std::fill(memory.blocks.begin() + first, memory.blocks.begin() + last, then);
  };
  eachRun(memory, from, to, Held::read,
          [&](std::size_t first, std::size_t last) { take(first, last, Held::gpu); });
  eachRun(memory, from, to, Held::written, [&](std::size_t first, std::size_t last) {
    take(first, last, Held::submitted);
    written.push_back({memory.at(first), memory.at(last)});
  });
  if (from <= memory.heldFrom && to >= memory.heldTo) memory.heldFrom = memory.heldTo = 0;
  return written;
}

/// What the program has accessed meanwhile is its own again.
void noteSent(Moving& memory, std::span<const wire::AddressRange> sent, CUresult status) {
  const std::lock_guard lock(state().mutex);
  for (const wire::AddressRange& range : sent) {
    eachRun(memory, memory.blockOf(range.begin), memory.blockOf(range.end - 1) + 1, Held::submitted,
            [&](std::size_t first, std::size_t last) {
              if (status == CUDA_SUCCESS)
                std::fill(memory.blocks.begin() + first, memory.blocks.begin() + last, Held::gpu);
              else
                memory.give(first, last, Held::written);
            });
  }
}

void send(Moving& memory, std::uint64_t begin, std::uint64_t end) {
  place(memory, false);
  if (memory.place != wire::ManagedPlace::gpu) return;
  const std::vector<wire::AddressRange> written = takeHeld(memory, begin, end);
  CUresult status = CUDA_SUCCESS;
  for (std::size_t done = 0; done < written.size() && status == CUDA_SUCCESS;) {
    const std::size_t most = std::min(wire::kMostMoves, written.size() - done);
    status = sendRanges(memory.begin, {written.data() + done, most});
    done += most;
  }
  noteSent(memory, written, status);
}

std::vector<MovingPointer> within(std::uint64_t begin, std::uint64_t end) {
  std::vector<MovingPointer> found;
  const std::lock_guard lock(state().mutex);
  for (const auto& [address, memory] : state().all) {
    if (memory->begin < end && memory->end > begin) found.push_back(memory);
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
  memory->blocks.resize((mapped + kBlock - 1) / kBlock);
  memory->give(0, memory->blocks.size(), Held::written);
  addHostRange({address, bytes, 0, HostKind::moving, Thread::current().context()});
  const std::lock_guard lock(state().mutex);
  state().all.emplace(address, memory);
  anyMoves.store(true, std::memory_order_relaxed);
  beforeWork.store(moveAllToGpu, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult freeMoving(std::uint64_t address) {
  const std::lock_guard turn(state().sending);
  Call call;
  if (!call.begin(CallNumber::freeManaged, 8, kOrdered)) return call.status();
  call.encoder().put(address);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  removeHostRange(address);
  const std::lock_guard lock(state().mutex);
  const MovingPointer memory = find(address);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  state().all.erase(address);
  wire::unmapShared(address, memory->end - memory->begin);
  Session::current()->window.release(address);
  return CUDA_SUCCESS;
}

bool moves(std::uint64_t address) {
  if (!anyMoves.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(state().mutex);
  return find(address) != nullptr;
}

bool isOnGpu(std::uint64_t address) {
  if (!moves(address)) return false;
  const std::lock_guard turn(state().sending);
  for (const MovingPointer& memory : within(address, address + 1)) {
    place(*memory, false);
    return memory->place == wire::ManagedPlace::gpu;
  }
  return false;
}

void keepWithProgram(std::uint64_t address) {
  const std::lock_guard turn(state().sending);
  for (const MovingPointer& memory : within(address, address + 1)) place(*memory, true);
}

void moveToGpu(std::uint64_t begin, std::uint64_t end) {
  const std::lock_guard turn(state().sending);
  for (const MovingPointer& memory : within(begin, end)) send(*memory, begin, end);
  const std::lock_guard lock(state().mutex);
  noteHeld();
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
