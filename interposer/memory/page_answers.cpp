// The thread that brings pages of managed memory back when the program accesses them.
#include <utility>

#include "interposer/memory/moving_blocks.h"
#include "interposer/memory/page_faults.h"
#include "interposer/session/call.h"
#include "interposer/session/call_hooks.h"
#include "interposer/session/callback.h"
#include "interposer/session/log.h"

namespace interposer {

namespace {

/// Maximum number of blocks that one access brings back, if accesses come in order.
constexpr std::size_t kMostBlocks = 32;

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

void lose(std::uint64_t begin, std::uint64_t end, CUresult status) {
  log("managed memory at 0x%llx cannot come back from the GPU: error %d. The program's access to "
      "it "
      "ends with SIGBUS",
      static_cast<unsigned long long>(begin), static_cast<int>(status));
  losePages(begin, end);
}

/// A block that is on its way to the GPU counts as written: nobody knows yet whether it arrives.
void answer(Moving& memory, const PageFault& fault) {
  const std::size_t block = memory.blockOf(fault.address);
  const Held before = memory.blocks[block];
  const std::size_t last = blocksFor(memory, block);
  const std::uint64_t begin = memory.at(block), end = memory.at(last);
  if (before == Held::gpu) {
    if (const CUresult status = bringBack(memory, block, last); status != CUDA_SUCCESS)
      return lose(begin, end, status);
  }
  const bool writable = fault.writes || before == Held::written || before == Held::submitted;
  memory.give(block, last, writable ? Held::written : Held::read);
  // before the thread continues, which may submit work at once
  beforeWork.store(moveAllToGpu, std::memory_order_release);
  if (fault.isProtected)
    letWritePages(begin, end);
  else
    givePages(begin, end, writable);
}

/// Its calls take no place in the order of the program's calls, so it waits for no other thread.
void* answerFaults(void* channel) {
  Thread& thread = Thread::current();
  thread.channel.reset(static_cast<wire::ClientChannel*>(channel));
  thread.session = Session::current();
  PageFault fault;
  while (awaitPageFault(fault)) {
    const std::lock_guard lock(movingState().mutex);
    const std::uint64_t begin = fault.address & ~(kMovingBlock - 1);
    if (const MovingPointer memory = findMoving(fault.address))
      answer(*memory, fault);
    else
      wakePages(begin, begin + kMovingBlock);
  }
  return nullptr;
}

/// The thread gets its channel here, because nobody could tell it later that there is none.
bool startAnswering() {
  Session* const session = Session::current();
  if (!openPageFaults(session->faultDevice())) return false;
  auto channel = session->openChannel(wire::kAnswersFaults);
  if (channel != nullptr && startThread(answerFaults, channel.get()))
    return static_cast<void>(channel.release()), true;
  if (channel != nullptr) session->forget(channel.get());
  log("no thread can be started that follows managed memory: it stays in host memory. Raise the "
      "container's limit of processes");
  closePageFaults();
  return false;
}

}  // namespace

bool faultsAnswered() {
  static const bool answered = startAnswering();
  return answered;
}

}  // namespace interposer
