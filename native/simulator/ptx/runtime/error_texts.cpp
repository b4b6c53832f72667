#include "native/simulator/ptx/runtime/error_texts.h"

#include <algorithm>
#include <iterator>

namespace simulator::ptx {
namespace {

struct ErrorText {
  std::uint32_t error;
  char name[40];
  char text[72];
};

/// Errors that functions of the device runtime return; other errors end the launch.
constexpr ErrorText kErrorTexts[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {65, "cudaErrorLaunchMaxDepthExceeded", "launch would exceed maximum depth of nested launches"},
    {69, "cudaErrorLaunchPendingCountExceeded", "too many launches have not begun"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {215, "cudaErrorUnsupportedLimit", "limit is not supported on this architecture"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {912, "cudaErrorInvalidClusterSize", "invalid cluster size"},
    {~0u, "unrecognized error code", "unrecognized error code"},
};

const ErrorText& errorText(std::uint32_t error) {
  const auto* found = std::find_if(std::begin(kErrorTexts), std::end(kErrorTexts) - 1,
                                   [&](const ErrorText& row) { return row.error == error; });
  return *found;
}

}  // namespace

const char* errorName(std::uint32_t error) { return errorText(error).name; }

const char* errorString(std::uint32_t error) { return errorText(error).text; }

bool insideErrorTexts(std::uint64_t address, std::uint64_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(kErrorTexts);
  return bytes <= sizeof kErrorTexts && address - begin <= sizeof kErrorTexts - bytes;
}

}  // namespace simulator::ptx
