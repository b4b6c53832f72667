// A copy as data: what it reads and writes. copy_submission.h gives it to a stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda_abi.h"

namespace simulator {

/// The kinds of memory that a copy accepts on one side.
enum class Side { device, host, any, array };

/// Start of a copy in an array.
struct ArrayPlace {
  CUarray array = nullptr;
  std::size_t x = 0, y = 0, z = 0;
};

/// Layers of rows of bytes; a linear copy is one row.
struct Copy {
  std::uint64_t destination = 0;
  std::uint64_t source = 0;
  std::size_t width = 0;
  std::size_t rows = 1;
  std::size_t destinationPitch = 0;
  std::size_t sourcePitch = 0;
  Side to = Side::any;
  Side from = Side::any;
  std::size_t layers = 1;
  std::size_t destinationLayer = 0;  ///< bytes from one layer to the next
  std::size_t sourceLayer = 0;
  bool toMapped = false, fromMapped = false;  ///< the side is memory of cuMemMap; see prepared()
  ArrayPlace toArray{};                       ///< of Side::array, whose address is known, too
  ArrayPlace fromArray{};
};

/// Reads the description of a copy, and checks that it stays inside of arrays.
CUresult describe(const CUDA_MEMCPY3D& request, Copy& copy);
/// The description of a copy, for a node of a graph.
CUDA_MEMCPY3D parametersOf(const Copy& copy);

/// Returns CUDA_ERROR_INVALID_VALUE if a side that names device memory is not inside one
/// allocation.
CUresult check(const Copy& copy);
/// A checked copy that can run later: it notes which sides may be unmapped until then.
Copy prepared(Copy copy);
/// Runs a prepared copy. It is a fault if memory was unmapped before the end.
void run(const Copy& copy);
/// Bytes from the first to the last one that are read.
std::size_t sourceExtent(const Copy& copy);

}  // namespace simulator
