// Generated. Do not edit, change cuda-api/.
// Which kind of handle stands for a value of each type of the API that travels as a handle.
#pragma once

#include "cuda_abi.h"
#include "wire/handle_table.h"

namespace worker {

template <class T>
struct HandleOf;
template <>
struct HandleOf<CUstream> {
  static constexpr auto kind = wire::HandleKind::stream;
};
template <>
struct HandleOf<CUmodule> {
  static constexpr auto kind = wire::HandleKind::module;
};
template <>
struct HandleOf<CUmemGenericAllocationHandle> {
  static constexpr auto kind = wire::HandleKind::genericAllocation;
};

}  // namespace worker
