// Copies as operations of streams.
#pragma once

#include "native/simulator/copy.h"
#include "native/simulator/stream.h"

namespace simulator {

/// Enqueues the copy. Returns once the host may reuse its pageable memory. A `synchronous` copy of
/// host memory returns after it has ended. A stream that captures gets a node instead.
CUresult submit(const Copy& copy, Stream& stream, bool synchronous);

}  // namespace simulator
