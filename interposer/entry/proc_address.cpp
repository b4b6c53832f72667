// cuGetProcAddress: how cudart, and everything built on it, finds the driver. Answers are those of
// the real driver (recorded).
#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "interposer/entry/entry_points.h"
#include "interposer/entry/missing_calls.h"
#include "interposer/session/session.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

constexpr int kApiVersion = 13000;
constexpr cuuint64_t kKnownFlags =
    CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

std::span<const EntryPoint> entriesOf(std::string_view name) {
  const std::span<const EntryPoint> all(kEntryPoints, kEntryPointCount);
  const auto found = std::ranges::equal_range(
      all, name, {}, [](const EntryPoint& entry) { return std::string_view(entry.name); });
  return {found.begin(), found.end()};
}

/// The newest prototype that is not newer than what was asked for. A call that has a per-thread
/// variant at all answers the per-thread flag with that variant only.
const EntryPoint* choose(std::span<const EntryPoint> entries, int version, bool perThread) {
  const bool hasVariant = perThread && std::ranges::any_of(entries, &EntryPoint::perThread);
  const EntryPoint* best = nullptr;
  for (const EntryPoint& entry : entries) {
    if (entry.perThread != hasVariant || entry.version > version) continue;
    if (best == nullptr || entry.version > best->version) best = &entry;
  }
  return best;
}

CUresult answer(void** pfn, CUdriverProcAddressQueryResult* symbolStatus, void* pointer,
                CUdriverProcAddressQueryResult status) {
  *pfn = pointer;
  if (symbolStatus != nullptr) *symbolStatus = status;
  return CUDA_SUCCESS;
}

/// A runtime asks for this name first, and uses no answer to it.
constexpr std::string_view kProbe = "";

CUresult notFound(std::string_view name, void** pfn, CUdriverProcAddressQueryResult* symbolStatus) {
  if (name == kProbe)
    beginRuntimeTable();
  else
    noteMissing(name);
  return answer(pfn, symbolStatus, nullptr, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  if (symbol == nullptr || pfn == nullptr || (flags & ~kKnownFlags) != 0 ||
      cudaVersion > kApiVersion)
    return CUDA_ERROR_INVALID_VALUE;
  const auto entries = entriesOf(symbol);
  if (entries.empty()) return notFound(symbol, pfn, symbolStatus);
  const EntryPoint* chosen =
      choose(entries, cudaVersion, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (chosen == nullptr)
    return answer(pfn, symbolStatus, nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  if (!chosen->supported) return notFound(symbol, pfn, symbolStatus);
  return answer(pfn, symbolStatus, chosen->pointer, CU_GET_PROC_ADDRESS_SUCCESS);
}

/// The prototype of CUDA 11.3, without a status: a name that is not there is an error.
CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  const CUresult status = interposer::cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, nullptr);
  return status == CUDA_SUCCESS && *pfn == nullptr ? CUDA_ERROR_NOT_FOUND : status;
}

}  // namespace interposer
