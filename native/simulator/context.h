// Contexts, and each thread's current context.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/engine.h"
#include "native/simulator/heap.h"

namespace simulator {

class Completion;
class Device;
class Stream;
struct Module;

inline constexpr int kLimits = CU_LIMIT_MAX;

/// Contexts are destroyed but never freed, so a stale handle is safe to read.
struct Context {
  Context(Device& device, bool primary);

  Device& device;
  const bool primary;
  std::atomic<std::uint64_t> id{0};
  std::atomic<unsigned> flags{0};
  unsigned apiVersion = 3020;
  std::atomic<bool> alive{false};
  std::atomic<bool> everAlive{false};
  const std::unique_ptr<const AddressSpace> memory;  ///< the memory that its kernels may access
  Heap heap;                                         ///< heap of malloc in kernels
  Heap launchBuffers;                                ///< parameters of launches by kernels

  std::mutex submission;  ///< serialises the submission of operations to the context
  /// operations that all later ones follow; guarded by `submission`
  std::vector<std::shared_ptr<const Completion>> awaited;
  std::mutex mutex;               ///< guards the members below
  unsigned retained = 0;          ///< primary contexts: cuDevicePrimaryCtxRetain minus Release
  std::size_t reservedBytes = 0;  ///< bytes reserved on the device until the context ends
  std::array<std::size_t, kLimits> limits{};
  CUfunc_cache cacheConfig = CU_FUNC_CACHE_PREFER_NONE;
  std::set<Context*> peers;                    ///< contexts whose memory this one may access
  std::shared_ptr<Stream> legacy;              ///< created by activate()
  std::vector<std::weak_ptr<Stream>> streams;  ///< all other streams, per-thread ones included
  std::set<std::shared_ptr<Module>> modules;   ///< modules loaded by cuModuleLoad* or for a library
};

Context* makePrimaryContext(Device& device);
void setDefaultLimits(Context& context);
/// Empty if the limit does not exist on this device.
std::optional<std::size_t> limitOf(Context& context, int limit);
/// Activates a context: sets limits, creates the legacy stream, reserves memory.
CUresult activate(Context& context);
/// Waits for the context's work and frees its objects.
void destroy(Context& context);
/// The live streams of a context, the legacy one first.
std::vector<std::shared_ptr<Stream>> streamsOf(Context& context);
/// Waits for all work submitted to the context.
void synchronize(Context& context);
/// Finds the context of a handle. Returns INVALID_CONTEXT if it never existed, and
/// CONTEXT_IS_DESTROYED if it has ended.
CUresult findContext(CUcontext handle, Context*& context);
/// The thread's stack of contexts; the last one is current.
std::vector<Context*>& contextStack();

}  // namespace simulator
