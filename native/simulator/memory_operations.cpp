#include "native/simulator/memory_operations.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "native/simulator/fault.h"
#include "native/simulator/memory.h"
#include "native/simulator/memory_user.h"

namespace simulator {
namespace {

constexpr std::size_t kMostOperations = 256;
constexpr unsigned kConditions = CU_STREAM_WAIT_VALUE_NOR;  // the bits of the condition

/// Managed memory and pools have no such words (recorded).
bool hasWords(std::uint64_t address) {
  const auto found = Allocations::all().find(address);
  return found && !found->managed() && found->pool == nullptr;
}

CUresult checkWord(CUdeviceptr address, std::size_t bytes) {
  const bool valid = address % bytes == 0 && insideAllocation(address, bytes) && hasWords(address);
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// This GPU cannot flush remote writes, and says so in its attributes.
CUresult checkWait(CUdeviceptr address, std::size_t bytes, unsigned flags) {
  if ((flags & ~(kConditions | CU_STREAM_WAIT_VALUE_FLUSH)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return checkWord(address, bytes);
}

/// The second version of the calls does not take CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER.
CUresult checkWrite(CUdeviceptr address, std::size_t bytes, unsigned flags) {
  return flags == CU_STREAM_WRITE_VALUE_DEFAULT && insideWritable(address, bytes)
             ? checkWord(address, bytes)
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult check(const CUstreamBatchMemOpParams& operation) {
  const auto& wait = operation.waitValue;
  const auto& write = operation.writeValue;
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32: return checkWait(wait.address, 4, wait.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return checkWait(wait.address, 8, wait.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: return checkWrite(write.address, 4, write.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return checkWrite(write.address, 8, write.flags);
    case CU_STREAM_MEM_OP_BARRIER:
      return operation.memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_VALUE;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/// GEQ compares the signed difference, so that counters may wrap around.
template <class Word, class Signed>
bool holds(Word word, Word value, unsigned condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<Signed>(word - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return word == value;
    case CU_STREAM_WAIT_VALUE_AND: return (word & value) != 0;
    default: return static_cast<Word>(~(word | value)) != 0;  // NOR
  }
}

/// A word of memory in use by one operation.
struct Place {
  CUdeviceptr address;
  bool mapped;
};

/// Calls use(std::atomic_ref of the word). It is a fault if the memory was unmapped.
template <class Word>
auto access(const Place& place, auto&& use) {
  const auto word = [&] { return std::atomic_ref(*reinterpret_cast<Word*>(place.address)); };
  if (!place.mapped) return use(word());
  const MemoryUser user;
  if (insideMapped(place.address, sizeof(Word))) return use(word());
  setFault(CUDA_ERROR_LAUNCH_FAILED);
  Word nowhere{};
  return use(std::atomic_ref(nowhere));
}

/// Polls, first without sleeping, then at growing intervals.
template <class Word, class Signed>
void await(const Place& place, Word value, unsigned condition) {
  const auto load = [&] {
    return access<Word>(
        place, [](std::atomic_ref<Word> word) { return word.load(std::memory_order_acquire); });
  };
  std::chrono::microseconds rest{0};
  for (int polls = 0; !holds<Word, Signed>(load(), value, condition); ++polls) {
    if (fault() != CUDA_SUCCESS) return;
    if (polls < 100) {
      std::this_thread::yield();
    } else {
      rest = std::min(rest + std::chrono::microseconds(10), std::chrono::microseconds(500));
      std::this_thread::sleep_for(rest);
    }
  }
}

template <class Word>
void store(const Place& place, Word value) {
  access<Word>(place,
               [&](std::atomic_ref<Word> word) { word.store(value, std::memory_order_release); });
}

/// 0 if the operation has no word.
CUdeviceptr addressOf(const CUstreamBatchMemOpParams& operation) {
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return operation.waitValue.address;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return operation.writeValue.address;
    default: return 0;
  }
}

void run(const PreparedOperation& operation) {
  const auto& wait = operation.parameters.waitValue;
  const auto& write = operation.parameters.writeValue;
  const unsigned condition = wait.flags & kConditions;
  const Place place{addressOf(operation.parameters), operation.mapped};
  switch (operation.parameters.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return await<cuuint32_t, std::int32_t>(place, wait.value, condition);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return await<cuuint64_t, std::int64_t>(place, wait.value64, condition);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: return store(place, write.value);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return store(place, write.value64);
    default: return std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

}  // namespace

CUresult check(std::span<const CUstreamBatchMemOpParams> operations) {
  if (operations.empty() || operations.size() > kMostOperations) return CUDA_ERROR_INVALID_VALUE;
  for (const CUstreamBatchMemOpParams& operation : operations) {
    if (const CUresult status = check(operation); status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

std::vector<PreparedOperation> prepared(const MemoryOperations& operations) {
  std::vector<PreparedOperation> all;
  all.reserve(operations.size());
  for (const CUstreamBatchMemOpParams& operation : operations) {
    const CUdeviceptr address = addressOf(operation);
    all.push_back({operation, address != 0 && insideMapped(address, 1)});
  }
  return all;
}

void run(const std::vector<PreparedOperation>& operations) {
  for (const PreparedOperation& operation : operations) {
    if (fault() == CUDA_SUCCESS) run(operation);
  }
}

}  // namespace simulator
