// Batches of copies. CUDA leaves the order inside a batch open, so each copy goes the way of a
// single one.
#include <algorithm>
#include <cstdint>

#include "interposer/graphs/pageable_copy.h"
#include "interposer/memory/block.h"
#include "interposer/memory/block_copy.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/array_format.h"

namespace interposer {

namespace {

bool isLegacyDefault(CUstream stream) { return stream == nullptr || stream == CU_STREAM_LEGACY; }

bool isKnown(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

bool isLine(const CUDA_MEMCPY3D& copy) {
  return copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED &&
         copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED && copy.Height == 1 && copy.Depth == 1;
}

/// One copy of a batch, as the order says in which its source is read. Sets `waits` if the batch
/// must wait for the stream: the source is on the device and is to be read during the call.
CUresult copyIn(const CUDA_MEMCPY3D& copy, CUmemcpySrcAccessOrder order, CUstream stream,
                bool& waits) {
  const Block block = readBlock(copy);
  const bool fromProgram = block.from.begin != nullptr;
  const bool readsNow = order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && !captures(stream);
  // The stream's earlier work may still write pageable memory, which is read by this thread.
  if (fromProgram && isPageable(block) && order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
      !captures(stream)) {
    const CUresult status = interposer::cuStreamSynchronize(stream);
    if (status != CUDA_SUCCESS) return status;
  }
  waits |= readsNow && !fromProgram;
  if (isLine(copy) && (!readsNow || isPageable(block)))
    return interposer::cuMemcpyAsync(copy.dstDevice, copy.srcDevice, copy.WidthInBytes, stream);
  return copyBlock(copy, {stream, false, false, readsNow});
}

CUresult finish(bool waits, CUstream stream) {
  return waits ? interposer::cuStreamSynchronize(stream) : CUDA_SUCCESS;
}

CUDA_MEMCPY3D lineOf(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = from, copy.dstDevice = to;
  copy.WidthInBytes = bytes, copy.Height = copy.Depth = 1;
  return copy;
}

/// The copies of a batch and their attributes.
struct Batch {
  const CUdeviceptr* dsts;
  const CUdeviceptr* srcs;
  const std::size_t* sizes;
  std::size_t count;
  const CUmemcpyAttributes* attributes;
  const std::size_t* firsts;  ///< first copy of each element of `attributes`
  std::size_t kinds;

  bool isWhole() const {
    if (dsts == nullptr || srcs == nullptr || sizes == nullptr || attributes == nullptr ||
        firsts == nullptr || count == 0 || kinds == 0 || kinds > count || firsts[0] != 0)
      return false;
    for (std::size_t i = 0; i < kinds; ++i) {
      if (!isKnown(attributes[i].srcAccessOrder) || firsts[i] >= count ||
          (i > 0 && firsts[i] <= firsts[i - 1]))
        return false;
    }
    return true;
  }
};

/// `failed`: the copy that is wrong; SIZE_MAX if the batch as a whole is.
CUresult copyAll(const Batch& batch, std::size_t& failed, CUstream stream) {
  failed = SIZE_MAX;
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (!batch.isWhole() || isLegacyDefault(stream)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (batch.dsts[i] == 0 || batch.srcs[i] == 0) return failed = i, CUDA_ERROR_INVALID_VALUE;
  }
  bool waits = false;
  for (std::size_t i = 0, kind = 0; i < batch.count; ++i) {
    if (kind + 1 < batch.kinds && batch.firsts[kind + 1] == i) ++kind;
    const CUresult status = copyIn(lineOf(batch.dsts[i], batch.srcs[i], batch.sizes[i]),
                                   batch.attributes[kind].srcAccessOrder, stream, waits);
    if (status != CUDA_SUCCESS) return failed = i, status;
  }
  return finish(waits, stream);
}

/// Bytes of what the extents and offsets of an operation count: elements of its arrays, else bytes.
CUresult unitOf(const CUDA_MEMCPY3D_BATCH_OP& operation, std::size_t& unit) {
  unit = 0;
  for (const CUmemcpy3DOperand* operand : {&operation.src, &operation.dst}) {
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) continue;
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR array{};
    const CUresult status = remote::cuArray3DGetDescriptor_v2(&array, operand->op.array.array);
    if (status != CUDA_SUCCESS) return status;
    const std::size_t bytes = wire::elementBytes(array.Format, array.NumChannels);
    if (bytes == 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (unit != 0 && unit != bytes) return CUDA_ERROR_INVALID_VALUE;
    unit = bytes;
  }
  unit = std::max<std::size_t>(unit, 1);
  return CUDA_SUCCESS;
}

/// An end of a copy of a block.
struct End {
  CUmemorytype type;
  CUdeviceptr pointer;
  CUarray array;
  std::size_t pitch, height, x, y, z;
};

bool readEnd(const CUmemcpy3DOperand& operand, std::size_t unit, End& end) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    const auto& [array, offset] = operand.op.array;
    end = {CU_MEMORYTYPE_ARRAY, 0, array, 0, 0, 0, offset.y, offset.z};
    return !__builtin_mul_overflow(offset.x, unit, &end.x);
  }
  const auto& memory = operand.op.ptr;
  end = {CU_MEMORYTYPE_UNIFIED, memory.ptr, nullptr, 0, memory.layerHeight, 0, 0, 0};
  return memory.ptr != 0 && !__builtin_mul_overflow(memory.rowLength, unit, &end.pitch);
}

CUresult readOperation(const CUDA_MEMCPY3D_BATCH_OP& operation, CUDA_MEMCPY3D& copy) {
  std::size_t unit = 1;
  if (const CUresult status = unitOf(operation, unit); status != CUDA_SUCCESS) return status;
  End from{};
  End to{};
  copy = {};
  if (!readEnd(operation.src, unit, from) || !readEnd(operation.dst, unit, to) ||
      !isKnown(operation.srcAccessOrder) ||
      __builtin_mul_overflow(operation.extent.width, unit, &copy.WidthInBytes))
    return CUDA_ERROR_INVALID_VALUE;
  copy.Height = operation.extent.height, copy.Depth = operation.extent.depth;
  copy.srcMemoryType = from.type, copy.srcDevice = from.pointer, copy.srcArray = from.array;
  copy.srcPitch = from.pitch, copy.srcHeight = from.height;
  copy.srcXInBytes = from.x, copy.srcY = from.y, copy.srcZ = from.z;
  copy.dstMemoryType = to.type, copy.dstDevice = to.pointer, copy.dstArray = to.array;
  copy.dstPitch = to.pitch, copy.dstHeight = to.height;
  copy.dstXInBytes = to.x, copy.dstY = to.y, copy.dstZ = to.z;
  return CUDA_SUCCESS;
}

CUresult copyOperations(std::size_t count, const CUDA_MEMCPY3D_BATCH_OP* operations,
                        std::size_t& failed, unsigned long long flags, CUstream stream) {
  failed = SIZE_MAX;
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (count == 0 || operations == nullptr || flags != 0 || isLegacyDefault(stream))
    return CUDA_ERROR_INVALID_VALUE;
  bool waits = false;
  for (std::size_t i = 0; i < count; ++i) {
    CUDA_MEMCPY3D copy{};
    CUresult status = readOperation(operations[i], copy);
    if (status == CUDA_SUCCESS) status = copyIn(copy, operations[i].srcAccessOrder, stream, waits);
    if (status != CUDA_SUCCESS) return failed = i, status;
  }
  return finish(waits, stream);
}

}  // namespace

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                               CUstream hStream) {
  std::size_t failed = 0;
  return copyAll({dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, failed, hStream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                            size_t* failIdx, CUstream hStream) {
  std::size_t failed = 0;
  const CUresult status =
      copyAll({dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs}, failed, hStream);
  if (status != CUDA_SUCCESS && failIdx != nullptr) *failIdx = failed;
  return status;
}

CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList,
                                 unsigned long long flags, CUstream hStream) {
  std::size_t failed = 0;
  return copyOperations(numOps, opList, failed, flags, hStream);
}

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx,
                              unsigned long long flags, CUstream hStream) {
  std::size_t failed = 0;
  const CUresult status = copyOperations(numOps, opList, failed, flags, hStream);
  if (status != CUDA_SUCCESS && failIdx != nullptr) *failIdx = failed;
  return status;
}

}  // namespace interposer
