// Batches of copies. Those of one batch have no order; here they run in the order of the list.
#include <limits>
#include <vector>

#include "native/simulator/array.h"
#include "native/simulator/copy_submission.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/handles.h"

using namespace simulator;

namespace {

/// Value of failIdx if no single copy is the reason.
constexpr std::size_t kNoCopy = std::numeric_limits<std::size_t>::max();

struct Member {
  Copy copy;
  CUmemcpySrcAccessOrder order;
};

bool valid(CUmemcpySrcAccessOrder order, unsigned flags) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
         (flags & ~unsigned{CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE}) == 0;
}

/// Batches have no place in the order of the legacy default stream.
bool refuses(CUstream hStream) {
  return hStream == nullptr || hStream == reinterpret_cast<CUstream>(CU_STREAM_LEGACY);
}

/// Makes the copies of a batch with make(i, Member&), checks all, then submits them.
template <class Make>
CUresult submitBatch(std::size_t count, CUstream hStream, std::size_t* failIdx, Make&& make) {
  if (failIdx != nullptr) *failIdx = kNoCopy;
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    std::vector<Member> members(count);
    for (std::size_t i = 0; i < count; ++i) {
      CUresult status = make(i, members[i]);
      if (status == CUDA_SUCCESS) status = check(members[i].copy);
      if (status == CUDA_SUCCESS) continue;
      if (failIdx != nullptr) *failIdx = i;
      return status;
    }
    for (const auto& [copy, order] : members) {
      const CUresult status = submit(copy, stream, false);
      if (status != CUDA_SUCCESS) return status;
      // The program may reuse the source after the call.
      if (order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL) stream.synchronize();
    }
    return CUDA_SUCCESS;
  });
}

struct Attributes {
  const CUmemcpyAttributes* list;
  const std::size_t* begins;
  std::size_t count;
};

/// Whether each copy has attributes: the first ones begin at copy 0, and none without copies.
bool valid(const Attributes& attributes, std::size_t copies) {
  const auto& [list, begins, count] = attributes;
  if (list == nullptr || begins == nullptr || count == 0 || count > copies || begins[0] != 0)
    return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (begins[i] >= copies || (i > 0 && begins[i] <= begins[i - 1])) return false;
  }
  return true;
}

CUresult copyBatch(const CUdeviceptr* dsts, const CUdeviceptr* srcs, const std::size_t* sizes,
                   std::size_t count, const Attributes& attributes, std::size_t* failIdx,
                   CUstream hStream) {
  if (failIdx != nullptr) *failIdx = kNoCopy;
  if (dsts == nullptr || srcs == nullptr || sizes == nullptr || count == 0 || refuses(hStream) ||
      !valid(attributes, count))
    return CUDA_ERROR_INVALID_VALUE;
  std::size_t current = 0;
  return submitBatch(count, hStream, failIdx, [&](std::size_t i, Member& member) -> CUresult {
    if (current + 1 < attributes.count && attributes.begins[current + 1] <= i) ++current;
    const CUmemcpyAttributes& given = attributes.list[current];
    if (!valid(given.srcAccessOrder, given.flags)) return CUDA_ERROR_INVALID_VALUE;
    member.copy = {.destination = dsts[i],
                   .source = srcs[i],
                   .width = sizes[i],
                   .destinationPitch = sizes[i],
                   .sourcePitch = sizes[i]};
    member.order = given.srcAccessOrder;
    return CUDA_SUCCESS;
  });
}

/// The bytes of an operand's elements: those of an array, or 0 for memory.
CUresult elementBytes(const CUmemcpy3DOperand& operand, std::size_t& bytes) {
  bytes = 0;
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_POINTER) return CUDA_SUCCESS;
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  const auto array = Handles<Array>::all().find(operand.op.array.array);
  if (array == nullptr || array->elementBytes() == 0) return CUDA_ERROR_INVALID_VALUE;
  bytes = array->elementBytes();
  return CUDA_SUCCESS;
}

/// One side of a copy, in the terms of CUDA_MEMCPY3D.
struct Operand {
  CUmemorytype type;
  CUdeviceptr device;
  CUarray array;
  std::size_t x, y, z, pitch, height;
};

CUresult read(const CUmemcpy3DOperand& given, const CUextent3D& extent, std::size_t element,
              Operand& operand) {
  if (given.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    const CUoffset3D& offset = given.op.array.offset;
    if (offset.x > kNoCopy / 4 / element) return CUDA_ERROR_INVALID_VALUE;
    operand = {
        CU_MEMORYTYPE_ARRAY, 0, given.op.array.array, offset.x * element, offset.y, offset.z, 0, 0};
    return CUDA_SUCCESS;
  }
  const auto& [pointer, rowLength, layerHeight, hint] = given.op.ptr;
  if ((rowLength != 0 && rowLength < extent.width) ||
      (layerHeight != 0 && layerHeight < extent.height) || rowLength > kNoCopy / 4 / element)
    return CUDA_ERROR_INVALID_VALUE;
  operand = {CU_MEMORYTYPE_UNIFIED, pointer, nullptr, 0, 0, 0, rowLength * element, layerHeight};
  return CUDA_SUCCESS;
}

CUresult describe(const CUDA_MEMCPY3D_BATCH_OP& op, Copy& copy) {
  const CUextent3D& extent = op.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  std::size_t from = 0, to = 0;
  CUresult status = elementBytes(op.src, from);
  if (status == CUDA_SUCCESS) status = elementBytes(op.dst, to);
  if (status != CUDA_SUCCESS) return status;
  const std::size_t element = from != 0 ? from : to != 0 ? to : 1;
  if (extent.width > kNoCopy / 4 / element) return CUDA_ERROR_INVALID_VALUE;
  Operand source, destination;
  status = read(op.src, extent, element, source);
  if (status == CUDA_SUCCESS) status = read(op.dst, extent, element, destination);
  if (status != CUDA_SUCCESS) return status;
  CUDA_MEMCPY3D request{};
  request.srcMemoryType = source.type;
  request.srcDevice = source.device;
  request.srcArray = source.array;
  request.srcXInBytes = source.x;
  request.srcY = source.y;
  request.srcZ = source.z;
  request.srcPitch = source.pitch;
  request.srcHeight = source.height;
  request.dstMemoryType = destination.type;
  request.dstDevice = destination.device;
  request.dstArray = destination.array;
  request.dstXInBytes = destination.x;
  request.dstY = destination.y;
  request.dstZ = destination.z;
  request.dstPitch = destination.pitch;
  request.dstHeight = destination.height;
  request.WidthInBytes = extent.width * element;
  request.Height = extent.height;
  request.Depth = extent.depth;
  return simulator::describe(request, copy);
}

CUresult copyVolumes(std::size_t numOps, const CUDA_MEMCPY3D_BATCH_OP* opList, std::size_t* failIdx,
                     unsigned long long flags, CUstream hStream) {
  if (failIdx != nullptr) *failIdx = kNoCopy;
  if (numOps == 0 || opList == nullptr || flags != 0 || refuses(hStream))
    return CUDA_ERROR_INVALID_VALUE;
  // A real driver does not name the copy.
  return submitBatch(numOps, hStream, nullptr, [&](std::size_t i, Member& member) -> CUresult {
    if (!valid(opList[i].srcAccessOrder, opList[i].flags)) return CUDA_ERROR_INVALID_VALUE;
    member.order = opList[i].srcAccessOrder;
    return describe(opList[i], member.copy);
  });
}

}  // namespace

DRIVER_CALL cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                               size_t* failIdx, CUstream hStream) {
  return copyBatch(dsts, srcs, sizes, count, {attrs, attrsIdxs, numAttrs}, failIdx, hStream);
}
DRIVER_CALL cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                                  CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                                  CUstream hStream) {
  return copyBatch(dsts, srcs, sizes, count, {attrs, attrsIdxs, numAttrs}, nullptr, hStream);
}

DRIVER_CALL cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx,
                                 unsigned long long flags, CUstream hStream) {
  return copyVolumes(numOps, opList, failIdx, flags, hStream);
}
DRIVER_CALL cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList,
                                    unsigned long long flags, CUstream hStream) {
  return copyVolumes(numOps, opList, nullptr, flags, hStream);
}
