#include "native/simulator/copy_submission.h"

#include <vector>

#include "native/simulator/fault.h"
#include "native/simulator/memory.h"
#include "native/simulator/stream_capture.h"

namespace simulator {
namespace {

/// Copies up to this size take less time than waking the stream's thread. A pageable source is then
/// copied at once, so the call need not wait.
constexpr std::size_t kShort = 64 << 10;

bool known(std::uint64_t address) { return Allocations::all().find(address).has_value(); }

}  // namespace

CUresult submit(const Copy& given, Stream& stream, bool synchronous) {
  if (given.width == 0 || given.rows == 0) return CUDA_SUCCESS;
  const CUresult status = check(given);
  if (status != CUDA_SUCCESS) return status;
  const Copy copy = prepared(given);
  const auto node = captured(stream, [&](Work& work) {
    work = CopyWork{parametersOf(copy), &stream.context};
    return CUDA_SUCCESS;
  });
  if (node) return *node;
  const bool fromPageable = !known(copy.source), toPageable = !known(copy.destination);
  const std::size_t bytes = sourceExtent(copy);
  const auto work = [copy] { run(copy); };
  const bool isShort = !synchronous && bytes <= kShort;
  if (isShort && !toPageable && stream.performNow(work)) return CUDA_SUCCESS;
  if (isShort && fromPageable && !toPageable) {
    const auto* source = reinterpret_cast<const std::byte*>(copy.source);
    stream.submit([copy, staged = std::vector<std::byte>(source, source + bytes)] {
      Copy later = copy;
      later.source = reinterpret_cast<std::uint64_t>(staged.data());
      run(later);
    });
    return CUDA_SUCCESS;
  }
  const auto host = [](std::uint64_t address) {
    const auto found = Allocations::all().find(address);
    return !found || found->host();
  };
  if (fromPageable || toPageable ||
      (synchronous && (host(copy.source) || host(copy.destination)))) {
    stream.perform(work);
    return fault();
  }
  stream.submit(work);
  return CUDA_SUCCESS;
}

}  // namespace simulator
