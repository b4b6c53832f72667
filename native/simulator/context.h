// A context: what belongs to one user of a device, and which context each thread has current.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/address_space.h"

namespace simulator {

class Device;
class Stream;
struct Module;

inline constexpr int kLimits = CU_LIMIT_MAX;

/// Contexts are never freed, only destroyed: a handle that a thread kept stays safe to look at.
struct Context {
  Context(Device& device, bool primary);

  Device& device;
  const bool primary;
  std::atomic<std::uint64_t> id{0};
  std::atomic<unsigned> flags{0};
  unsigned apiVersion = 3020;
  std::atomic<bool> alive{false};
  std::atomic<bool> everAlive{false};
  ContextMemory memory;                   ///< what its kernels may reach
  std::atomic<std::size_t> heapBytes{0};  ///< held by malloc in kernels

  std::mutex submission;          ///< makes one order of all operations of the context
  std::mutex mutex;               ///< guards what follows
  unsigned retained = 0;          ///< primary contexts: cuDevicePrimaryCtxRetain minus Release
  std::size_t reservedBytes = 0;  ///< of the device, given back when it ends
  std::size_t heapLimit = 0;      ///< bytes of the heap of malloc, reserved; 0: no kernel has used it yet
  std::array<std::size_t, kLimits> limits{};
  CUfunc_cache cacheConfig = CU_FUNC_CACHE_PREFER_NONE;
  std::set<Context*> peers;                    ///< contexts whose memory this one may reach
  std::shared_ptr<Stream> legacy;              ///< made when the context comes alive
  std::vector<std::weak_ptr<Stream>> streams;  ///< all others, per-thread ones included
  std::set<std::shared_ptr<Module>> modules;   ///< loaded here, by cuModuleLoad* or for a library
};

Context* makePrimaryContext(Device& device);
void setDefaultLimits(Context& context);
/// Brings a context to life: limits, legacy stream, reserved memory.
CUresult activate(Context& context);
/// Waits for its work and frees what belongs to it.
void destroy(Context& context);
/// The live streams of a context, the legacy one first.
std::vector<std::shared_ptr<Stream>> streamsOf(Context& context);
/// Waits for all work submitted to the context.
void synchronize(Context& context);
/// Checks a handle that a call was given: INVALID_CONTEXT for one that never was, CONTEXT_IS_DESTROYED for one that ended.
CUresult findContext(CUcontext handle, Context*& context);
/// The thread's stack of contexts; the last one is current.
std::vector<Context*>& contextStack();

}  // namespace simulator
