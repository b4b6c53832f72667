// What can be told of a code image before it is loaded: the device memory that it takes (its code, its constants and, above all, its
// variables, for `__device__ char x[1 << 30]` is a way of getting memory too), and what its kernels may ask of the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace worker {

/// Of the entries of a fat binary, which are alternatives, the most.
struct ImageFacts {
  std::uint64_t memory = 0;  ///< bytes; 0 for what is no image
  bool mayPrint = false;     ///< it names the device's printf, or nobody can tell
  bool mayAllocate = false;  ///< the same of the device's malloc
};

/// `image`: an ELF file, a fat binary or PTX text.
ImageFacts inspectImage(std::span<const std::byte> image);

}  // namespace worker
