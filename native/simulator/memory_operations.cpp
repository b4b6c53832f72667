#include "native/simulator/memory_operations.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "native/simulator/fault.h"
#include "native/simulator/memory.h"

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

/// Polls, first without sleeping, then at growing intervals.
template <class Word, class Signed>
void await(CUdeviceptr address, Word value, unsigned condition) {
  const std::atomic_ref word(*reinterpret_cast<Word*>(address));
  std::chrono::microseconds rest{0};
  for (int polls = 0; !holds<Word, Signed>(word.load(std::memory_order_acquire), value, condition);
       ++polls) {
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
void store(CUdeviceptr address, Word value) {
  std::atomic_ref(*reinterpret_cast<Word*>(address)).store(value, std::memory_order_release);
}

void run(const CUstreamBatchMemOpParams& operation) {
  const auto& wait = operation.waitValue;
  const auto& write = operation.writeValue;
  const unsigned condition = wait.flags & kConditions;
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return await<cuuint32_t, std::int32_t>(wait.address, wait.value, condition);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return await<cuuint64_t, std::int64_t>(wait.address, wait.value64, condition);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: return store(write.address, write.value);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return store(write.address, write.value64);
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

void run(const MemoryOperations& operations) {
  for (const CUstreamBatchMemOpParams& operation : operations) {
    if (fault() == CUDA_SUCCESS) run(operation);
  }
}

}  // namespace simulator
