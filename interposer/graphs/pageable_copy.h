// Copy nodes with pageable memory. Natively the driver reads or writes the memory of the program
// when the node runs; the worker cannot. So the node is a child graph: a copy through pinned
// memory, and a host node that copies in the program. The program sees a copy node. A node is
// recognised by its host node, so clones and captured graphs need no list.
#pragma once

#include <cstddef>

#include "cuda_abi.h"

namespace interposer {

/// Whether an end of the copy is memory of the program that the worker does not have.
bool isPageable(const CUDA_MEMCPY3D& copy);

CUresult addPageableCopy(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                         const CUgraphEdgeData* edges, std::size_t count,
                         const CUgraphNodeParams& params);
/// `done` is false, and nothing has happened, if neither the node nor the new copy is pageable.
CUresult setPageableCopy(CUgraphNode node, const CUgraphNodeParams& params, bool& done);
CUresult setPageableCopyInExec(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params,
                               bool& done);
/// The copy that such a node does; false if it is another node.
bool findPageableCopy(CUgraphNode node, CUDA_MEMCPY3D& copy);

/// Whether the stream captures, so that a pageable copy becomes a node.
bool captures(CUstream stream);
/// Adds the copy to what the stream captures.
CUresult captureCopy(const CUDA_MEMCPY3D& copy, CUstream stream);

/// Frees the pinned memory of copies whose graphs have ended.
void releaseStaging();

/// While it lives, calls of this thread that a capture would forbid do not invalidate it: for calls
/// that the program did not make.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const bool wanted_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace interposer
