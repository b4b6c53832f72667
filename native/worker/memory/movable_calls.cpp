// The functions that MovableMemory puts in the driver's place.
#include <limits>
#include <type_traits>

#include "native/worker/memory/movable_memory.h"

namespace worker {

namespace {

MovableMemory* installed = nullptr;

const Driver& below() { return installed->below(); }
ProgramMemory& mapped() { return installed->mapped(); }

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

/// Saturates.
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > kMost - b ? kMost : a + b; }
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? kMost : result;
}

/// Memory that a call uses.
struct Span {
  CUdeviceptr begin = 0;
  std::uint64_t bytes = 0;
};

Span rows(CUdeviceptr begin, std::uint64_t pitch, std::uint64_t width, std::uint64_t height) {
  return {begin, height == 0 ? 0 : sum(product(pitch, height - 1), width)};
}

/// One end of a copy of layers of rows.
Span layers(CUmemorytype type, CUdeviceptr device, std::uint64_t pitch, std::uint64_t height,
            std::uint64_t x, std::uint64_t y, std::uint64_t z, const CUDA_MEMCPY3D& copy) {
  if (type != CU_MEMORYTYPE_DEVICE || copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0)
    return {};
  const std::uint64_t before = sum(product(sum(product(z, height), y), pitch), x);
  const std::uint64_t more = product(sum(product(copy.Depth - 1, height), copy.Height - 1), pitch);
  return {sum(device, before), sum(more, copy.WidthInBytes)};
}

Span source(const CUDA_MEMCPY3D& copy) {
  return layers(copy.srcMemoryType, copy.srcDevice, copy.srcPitch, copy.srcHeight, copy.srcXInBytes,
                copy.srcY, copy.srcZ, copy);
}

Span destination(const CUDA_MEMCPY3D& copy) {
  return layers(copy.dstMemoryType, copy.dstDevice, copy.dstPitch, copy.dstHeight, copy.dstXInBytes,
                copy.dstY, copy.dstZ, copy);
}

const CUDA_MEMCPY3D& plain(const CUDA_MEMCPY3D_PEER& copy) {
  static_assert(sizeof copy == sizeof(CUDA_MEMCPY3D));
  return reinterpret_cast<const CUDA_MEMCPY3D&>(copy);
}

Span target(const CUDA_MEMSET_NODE_PARAMS& set) {
  return rows(set.dst, set.pitch, product(set.width, set.elementSize), set.height);
}

template <class... Spans>
bool areValid(const Spans&... spans) {
  return ((spans.bytes == 0 ||
           installed->place(spans.begin, spans.bytes) != MovableMemory::Place::outside) &&
          ...);
}

bool isValid(const CUgraphNodeParams& node) {
  if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY)
    return areValid(source(node.memcpy.copyParams), destination(node.memcpy.copyParams));
  if (node.type != CU_GRAPH_NODE_TYPE_MEMSET) return true;
  const auto& set = node.memset;
  return areValid(rows(set.dst, set.pitch, product(set.width, set.elementSize), set.height));
}

/// Calls the driver if the spans are valid.
template <class Call, class... Spans>
CUresult checked(Call call, const Spans&... spans) {
  const auto submission = installed->submit();
  return areValid(spans...) ? call() : installed->refusal();
}

bool isOurs(CUdeviceptr address, std::size_t bytes) {
  const std::size_t some = bytes == 0 ? 1 : bytes;
  return installed->touches(address, some) || installed->pools().touches(address, some);
}

/// An allocation as a program knows it: of cuMemAlloc, or of a pool.
std::optional<MovableMemory::Allocation> allocationAt(CUdeviceptr address) {
  if (const auto memory = installed->find(address)) return memory;
  const auto pooled = installed->pools().find(address);
  if (!pooled) return std::nullopt;
  return MovableMemory::Allocation{
      .begin = pooled->begin, .bytes = pooled->bytes, .id = pooled->id, .pool = pooled->pool};
}

void replaceCopies(Driver& driver) {
  driver.cuMemcpyHtoD_v2 = [](CUdeviceptr to, const void* from, size_t bytes) {
    return checked([&] { return below().cuMemcpyHtoD_v2(to, from, bytes); }, Span{to, bytes});
  };
  driver.cuMemcpyDtoH_v2 = [](void* to, CUdeviceptr from, size_t bytes) {
    return checked([&] { return below().cuMemcpyDtoH_v2(to, from, bytes); }, Span{from, bytes});
  };
  driver.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, size_t bytes, CUstream in) {
    return checked([&] { return below().cuMemcpyHtoDAsync_v2(to, from, bytes, in); },
                   Span{to, bytes});
  };
  driver.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, size_t bytes, CUstream in) {
    return checked([&] { return below().cuMemcpyDtoHAsync_v2(to, from, bytes, in); },
                   Span{from, bytes});
  };
  driver.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream in) {
    return checked([&] { return below().cuMemcpyDtoDAsync_v2(to, from, bytes, in); },
                   Span{to, bytes}, Span{from, bytes});
  };
  driver.cuMemcpyPeerAsync = [](CUdeviceptr to, CUcontext toContext, CUdeviceptr from,
                                CUcontext fromContext, size_t bytes, CUstream in) {
    return checked(
        [&] { return below().cuMemcpyPeerAsync(to, toContext, from, fromContext, bytes, in); },
        Span{to, bytes}, Span{from, bytes});
  };
  driver.cuMemcpy3DAsync_v2 = [](const CUDA_MEMCPY3D* copy, CUstream in) {
    return checked([&] { return below().cuMemcpy3DAsync_v2(copy, in); }, source(*copy),
                   destination(*copy));
  };
  driver.cuMemcpy3DPeerAsync = [](const CUDA_MEMCPY3D_PEER* copy, CUstream in) {
    return checked([&] { return below().cuMemcpy3DPeerAsync(copy, in); }, source(plain(*copy)),
                   destination(plain(*copy)));
  };
}

template <auto Function, std::size_t Unit, class Value>
CUresult set(CUdeviceptr to, Value value, size_t count, CUstream in) {
  return checked([&] { return (below().*Function)(to, value, count, in); },
                 Span{to, product(count, Unit)});
}

template <auto Function, std::size_t Unit, class Value>
CUresult setRows(CUdeviceptr to, size_t pitch, Value value, size_t width, size_t height,
                 CUstream in) {
  return checked([&] { return (below().*Function)(to, pitch, value, width, height, in); },
                 rows(to, pitch, product(width, Unit), height));
}

void replaceMemsets(Driver& driver) {
  driver.cuMemsetD8_v2 = [](CUdeviceptr to, unsigned char value, size_t count) {
    return checked([&] { return below().cuMemsetD8_v2(to, value, count); }, Span{to, count});
  };
  driver.cuMemsetD8Async = set<&Driver::cuMemsetD8Async, 1, unsigned char>;
  driver.cuMemsetD16Async = set<&Driver::cuMemsetD16Async, 2, unsigned short>;
  driver.cuMemsetD32Async = set<&Driver::cuMemsetD32Async, 4, unsigned>;
  driver.cuMemsetD2D8Async = setRows<&Driver::cuMemsetD2D8Async, 1, unsigned char>;
  driver.cuMemsetD2D16Async = setRows<&Driver::cuMemsetD2D16Async, 2, unsigned short>;
  driver.cuMemsetD2D32Async = setRows<&Driver::cuMemsetD2D32Async, 4, unsigned>;
}

void replaceGraphNodes(Driver& driver) {
  driver.cuGraphAddMemsetNode = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                   size_t count, const CUDA_MEMSET_NODE_PARAMS* set,
                                   CUcontext context) {
    return checked(
        [&] { return below().cuGraphAddMemsetNode(node, graph, after, count, set, context); },
        target(*set));
  };
  driver.cuGraphMemsetNodeSetParams = [](CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set) {
    return checked([&] { return below().cuGraphMemsetNodeSetParams(node, set); }, target(*set));
  };
  driver.cuGraphExecMemsetNodeSetParams = [](CUgraphExec exec, CUgraphNode node,
                                             const CUDA_MEMSET_NODE_PARAMS* set,
                                             CUcontext context) {
    return checked([&] { return below().cuGraphExecMemsetNodeSetParams(exec, node, set, context); },
                   target(*set));
  };
  driver.cuGraphAddNode_v2 = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                const CUgraphEdgeData* edges, size_t count,
                                CUgraphNodeParams* params) {
    return isValid(*params) ? below().cuGraphAddNode_v2(node, graph, after, edges, count, params)
                            : installed->refusal();
  };
  driver.cuGraphNodeSetParams = [](CUgraphNode node, CUgraphNodeParams* params) {
    return isValid(*params) ? below().cuGraphNodeSetParams(node, params) : installed->refusal();
  };
  driver.cuGraphExecNodeSetParams = [](CUgraphExec exec, CUgraphNode node,
                                       CUgraphNodeParams* params) {
    return isValid(*params) ? below().cuGraphExecNodeSetParams(exec, node, params)
                            : installed->refusal();
  };
}

/// Memory of cuMemAlloc is no mapping of a program's own.
void replaceMappings(Driver& driver) {
  driver.cuMemMap = [](CUdeviceptr address, size_t bytes, size_t offset,
                       CUmemGenericAllocationHandle handle, unsigned long long flags) {
    return isOurs(address, bytes) ? installed->refusal()
                                  : mapped().map(address, bytes, offset, handle, flags);
  };
  driver.cuMemUnmap = [](CUdeviceptr address, size_t bytes) {
    return isOurs(address, bytes) ? installed->refusal() : mapped().unmap(address, bytes);
  };
  driver.cuMemAddressFree = [](CUdeviceptr address, size_t bytes) {
    return isOurs(address, bytes) ? installed->refusal() : below().cuMemAddressFree(address, bytes);
  };
  driver.cuMemSetAccess = [](CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                             size_t count) {
    return isOurs(address, bytes) ? installed->refusal()
                                  : below().cuMemSetAccess(address, bytes, access, count);
  };
  driver.cuMemRetainAllocationHandle = [](CUmemGenericAllocationHandle* handle, void* address) {
    return isOurs(reinterpret_cast<CUdeviceptr>(address), 1) ? installed->refusal()
                                                             : mapped().retain(handle, address);
  };
  driver.cuMemGetAccess = [](unsigned long long* flags, const CUmemLocation* location,
                             CUdeviceptr address) {
    const CUresult status = below().cuMemGetAccess(flags, location, address);
    if (status == CUDA_SUCCESS && isOurs(address, 1)) *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return status;
  };
}

void replaceHandles(Driver& driver) {
  driver.cuMemCreate = [](CUmemGenericAllocationHandle* handle, size_t bytes,
                          const CUmemAllocationProp* properties, unsigned long long flags) {
    return mapped().create(handle, bytes, properties, flags);
  };
  driver.cuMemRelease = [](CUmemGenericAllocationHandle handle) {
    return mapped().release(handle);
  };
  driver.cuMemExportToShareableHandle =
      [](void* file, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
         unsigned long long flags) { return mapped().exportTo(file, handle, type, flags); };
  driver.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle* handle, void* file,
                                             CUmemAllocationHandleType type) {
    return mapped().importFrom(handle, file, type);
  };
  driver.cuMemGetAllocationPropertiesFromHandle = [](CUmemAllocationProp* properties,
                                                     CUmemGenericAllocationHandle handle) {
    return mapped().properties(properties, handle);
  };
  driver.cuMemMapArrayAsync = [](CUarrayMapInfo* list, unsigned count, CUstream stream) {
    return mapped().mapArrays(list, count, stream);
  };
}

template <class Value>
void put(void* data, Value value) {
  *static_cast<Value*>(data) = value;
}

/// Replaces what the driver says of the mapping.
void describe(const MovableMemory::Allocation& memory, CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(data, memory.context);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return put<unsigned long long>(data, memory.id);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(data, memory.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put<std::size_t>(data, memory.bytes);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      if (memory.synchronous) put<int>(data, *memory.synchronous);
      return;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<int>(data, memory.pool == nullptr ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put(data, memory.pool);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put<cuuint64_t>(data, 0);
    default: return;
  }
}

void replaceQuestions(Driver& driver) {
  driver.cuMemGetAddressRange_v2 = [](CUdeviceptr* begin, size_t* bytes, CUdeviceptr address) {
    const CUresult status = below().cuMemGetAddressRange_v2(begin, bytes, address);
    if (status != CUDA_SUCCESS || !isOurs(address, 1)) return status;
    const auto memory = allocationAt(address);
    if (!memory) return CUDA_ERROR_NOT_FOUND;
    if (begin != nullptr) *begin = memory->begin;
    if (bytes != nullptr) *bytes = memory->bytes;
    return status;
  };
  driver.cuPointerGetAttribute = [](void* data, CUpointer_attribute attribute,
                                    CUdeviceptr address) {
    const CUresult status = below().cuPointerGetAttribute(data, attribute, address);
    if (status != CUDA_SUCCESS || !isOurs(address, 1)) return status;
    const auto memory = allocationAt(address);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    describe(*memory, attribute, data);
    return status;
  };
  driver.cuPointerGetAttributes = [](unsigned count, CUpointer_attribute* attributes, void** data,
                                     CUdeviceptr address) {
    const CUresult status = below().cuPointerGetAttributes(count, attributes, data, address);
    if (status != CUDA_SUCCESS || !isOurs(address, 1)) return status;
    const auto memory = allocationAt(address);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) describe(*memory, attributes[i], data[i]);
    return status;
  };
  // The driver refuses it for a mapping. Without GPUDirect, no copy is less synchronous than asked.
  driver.cuPointerSetAttribute = [](const void* value, CUpointer_attribute attribute,
                                    CUdeviceptr address) {
    if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !installed->find(address))
      return below().cuPointerSetAttribute(value, attribute, address);
    installed->setSynchronous(address, *static_cast<const unsigned*>(value) != 0);
    return CUDA_SUCCESS;
  };
}

}  // namespace

void MovableMemory::install(Driver& driver, bool exact) {
  below_ = driver;
  exact_ = exact;
  installed = this;
  driver.cuMemAlloc_v2 = [](CUdeviceptr* address, size_t bytes) {
    return installed->allocate(address, bytes);
  };
  driver.cuMemAllocPitch_v2 = [](CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                 unsigned element) {
    return installed->allocatePitched(address, pitch, width, height, element);
  };
  driver.cuMemFree_v2 = [](CUdeviceptr address) { return installed->free(address); };
  replaceCopies(driver);
  replaceMemsets(driver);
  replaceGraphNodes(driver);
  replaceMappings(driver);
  replaceHandles(driver);
  replaceQuestions(driver);
  if (!exact) pools_.install(driver);
  // What an older driver lacks stays missing.
  forEachFunction([&]<auto Member>(const char*) {
    if (below_.*Member == nullptr) driver.*Member = nullptr;
  });
}

}  // namespace worker
