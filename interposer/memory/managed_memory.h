// Managed memory. It is host memory that the GPU reaches at the same address, so each side sees the
// other's writes; advice and prefetches have no effect but what queries return.
#pragma once

#include <span>

#include "cuda_abi.h"

namespace interposer {

/// Frees memory of cuMemAllocManaged. False if none begins there; then nothing has happened.
bool freeManaged(CUdeviceptr address, CUresult& status);

/// Frees the managed memory of a context that has ended.
void freeManagedOf(CUcontext context);

/// The attribute of managed memory where the worker's driver, which sees registered host memory,
/// would answer otherwise. False: ask it.
bool managedAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address);

/// Whether an operation writes, or waits for, a word of managed memory. The driver refuses that
/// (recorded), but the worker's driver sees registered host memory.
bool usesManagedWord(std::span<const CUstreamBatchMemOpParams> operations);

}  // namespace interposer
