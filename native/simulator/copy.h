// Copies: what the calls of copy.cpp and copy_2d.cpp share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "native/simulator/stream.h"

namespace simulator {

/// Which memory a copy may meet on one side.
enum class Side { device, host, any };

/// Rows of bytes; a linear copy is one row.
struct Copy {
  std::uint64_t destination = 0;
  std::uint64_t source = 0;
  std::size_t width = 0;
  std::size_t rows = 1;
  std::size_t destinationPitch = 0;
  std::size_t sourcePitch = 0;
  Side to = Side::any;
  Side from = Side::any;
};

/// CUDA_ERROR_INVALID_VALUE when a side that names device memory does not lie inside one allocation.
CUresult check(const Copy& copy);
/// Puts the copy into the stream. It returns when the host may use its own pageable memory again, and for `synchronous` copies that
/// touch host memory when all is done.
CUresult submit(const Copy& copy, Stream& stream, bool synchronous);

}  // namespace simulator
