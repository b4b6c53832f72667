// Creation and end of contexts. The calls are in context_calls.cpp and primary_context.cpp.
#include <algorithm>
#include <atomic>

#include "native/simulator/address_space.h"
#include "native/simulator/array.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/event.h"
#include "native/simulator/fault.h"
#include "native/simulator/handles.h"
#include "native/simulator/memory.h"
#include "native/simulator/module.h"
#include "native/simulator/stream_capture.h"
#include "native/simulator/texture.h"
#include "native/simulator/texture_reference.h"

namespace simulator {
namespace {

std::atomic<std::uint64_t> nextContextId{1};

template <class Object>
void forget(const Context& context) {
  for (const auto& object : Handles<Object>::all().where(
           [&](const Object& candidate) { return &candidate.context == &context; })) {
    Handles<Object>::all().remove(object.get());
  }
}

/// Bytes for each launch by a kernel that has not begun: the largest parameters that it may have.
constexpr std::size_t kLaunchBytes = 4096;

/// Allocates a heap of the size of the context's limit.
Heap::Memory heapMemory(Context& context, CUlimit limit, std::size_t unit) {
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(context.mutex);
    bytes = context.limits[limit] * unit;
  }
  return {allocate(context, bytes, MemoryKind::heap), bytes};
}

}  // namespace

Context::Context(Device& device_, bool primary_)
    : device(device_),
      primary(primary_),
      memory(makeAddressSpace(*this)),
      heap([this] { return heapMemory(*this, CU_LIMIT_MALLOC_HEAP_SIZE, 1); }),
      launchBuffers([this] {
        return heapMemory(*this, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, kLaunchBytes);
      }) {
  Handles<Context>::all().add(std::shared_ptr<Context>(this, [](Context*) {}));
}

Context* makePrimaryContext(Device& device) { return new Context(device, true); }

CUresult activate(Context& context) {
  if (fault() != CUDA_SUCCESS) return fault();
  const std::size_t bytes = context.device.contextBytes();
  if (!context.device.charge(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  context.heap.clear();
  context.launchBuffers.clear();
  {
    const std::lock_guard order(context.submission);
    const std::lock_guard lock(context.mutex);
    context.reservedBytes = bytes;
    setDefaultLimits(context);
    context.legacy = std::make_shared<Stream>(context, 0u, 0);
    context.streams.clear();
    context.id = nextContextId.fetch_add(1);
  }
  context.device.addContext(1);
  context.everAlive = true;
  context.alive = true;
  return CUDA_SUCCESS;
}

std::vector<std::shared_ptr<Stream>> streamsOf(Context& context) {
  std::vector<std::shared_ptr<Stream>> live;
  const std::lock_guard lock(context.mutex);
  if (context.legacy != nullptr) live.push_back(context.legacy);
  std::erase_if(context.streams,
                [](const std::weak_ptr<Stream>& stream) { return stream.expired(); });
  for (const auto& weak : context.streams) {
    if (auto stream = weak.lock()) live.push_back(std::move(stream));
  }
  return live;
}

void synchronize(Context& context) {
  for (const auto& stream : streamsOf(context)) stream->synchronize();
}

void destroy(Context& context) {
  leaveCaptures(context);
  synchronize(context);
  context.alive = false;
  std::shared_ptr<Stream> legacy;
  std::set<std::shared_ptr<Module>> modules;
  std::size_t reserved = 0;
  {
    const std::lock_guard order(context.submission);
    const std::lock_guard lock(context.mutex);
    legacy.swap(context.legacy);
    modules.swap(context.modules);
    std::swap(reserved, context.reservedBytes);
    context.streams.clear();
  }
  forget<Stream>(context);
  forget<Event>(context);
  forgetImages(context);
  forget<TextureReference>(context);
  forget<SurfaceReference>(context);
  forget<Array>(context);
  forget<MipmappedArray>(context);
  for (const auto& module : modules) unload(*module);
  freeAll(context);
  Allocations::all().changeAccess([&] { context.peers.clear(); });
  context.device.release(reserved);
  context.device.addContext(-1);
}

CUresult findContext(CUcontext handle, Context*& context) {
  const auto found = Handles<Context>::all().find(handle);
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context = found.get();
  return context->alive.load() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

std::vector<Context*>& contextStack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

}  // namespace simulator
