#include "native/worker/session/relocation.h"

#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "native/worker/driver/devices.h"
#include "native/worker/driver/driver_start.h"

namespace worker {

namespace {

constexpr unsigned kLockMilliseconds = 5000;

/// By ordinal. The driver answers for the GPU that the process has moved to.
std::vector<CUuuid> visible(const Driver& driver) {
  int count = 0;
  driver.cuDeviceGetCount(&count);
  std::vector<CUuuid> uuids(static_cast<std::size_t>(count));
  for (int device = 0; device < count; ++device)
    driver.cuDeviceGetUuid_v2(&uuids[static_cast<std::size_t>(device)], device);
  return uuids;
}

std::optional<std::size_t> find(const std::vector<CUuuid>& uuids, std::string_view gpu) {
  for (std::size_t device = 0; device < uuids.size(); ++device)
    if (uuidText(uuids[device]) == gpu) return device;
  return std::nullopt;
}

/// Exchanges the first GPU for another one; the rest stays.
std::vector<CUcheckpointGpuPair> exchange(const std::vector<CUuuid>& gpus, std::size_t target) {
  std::vector<CUcheckpointGpuPair> pairs;
  for (const CUuuid& gpu : gpus) pairs.push_back({gpu, gpu});
  std::swap(pairs[0].newUuid, pairs[target].newUuid);
  return pairs;
}

}  // namespace

bool Relocation::isOn(std::string_view gpu) const { return find(visible(driver_), gpu) == 0; }

std::string Relocation::failed(const char* what, CUresult status) const {
  return std::string("the driver cannot ") + what + ": " + nameOf(driver_, status);
}

/// The driver 580 takes no memory that is managed: here, that is variables only.
std::string Relocation::notTaken(CUresult status) const {
  const char* const why =
      status == CUDA_ERROR_NOT_SUPPORTED ? ", as for programs with __managed__ variables" : "";
  return failed("take it from its GPU", status) + why;
}

std::string Relocation::moveTo(std::string_view gpu) {
  const std::vector<CUuuid> gpus = visible(driver_);
  const auto target = find(gpus, gpu);
  if (!target)
    return "its worker does not see GPU " + std::string(gpu) +
           ": it began before allocations could move";
  if (*target == 0) return {};
  if (std::string sentence = take(); !sentence.empty()) return sentence;
  std::string sentence = restore(exchange(gpus, *target));
  std::string stuck = lost_ ? std::string() : unlock();
  return stuck.empty() ? sentence : stuck;
}

std::string Relocation::take() {
  if (driver_.cuCheckpointProcessRestore == nullptr)
    return "the driver moves no programs: version 580 or newer is needed";
  CUcheckpointLockArgs args{};
  args.timeoutMs = kLockMilliseconds;
  CUresult status = driver_.cuCheckpointProcessLock(getpid(), &args);
  if (status != CUDA_SUCCESS) return failed("stop it", status);
  status = driver_.cuCheckpointProcessCheckpoint(getpid(), nullptr);
  if (status == CUDA_SUCCESS) return {};
  std::string stuck = unlock();
  return stuck.empty() ? notTaken(status) : stuck;
}

std::string Relocation::putBack() {
  const CUresult status = driver_.cuCheckpointProcessRestore(getpid(), nullptr);
  if (status == CUDA_SUCCESS) return unlock();
  lost_ = true;
  return failed("bring it back to its GPU", status);
}

std::string Relocation::unlock() {
  const CUresult status = driver_.cuCheckpointProcessUnlock(getpid(), nullptr);
  lost_ = status != CUDA_SUCCESS;
  return lost_ ? failed("let it go on", status) : std::string();
}

/// The pairs must name each visible GPU (H200, driver 580). After a refusal, a restoration without
/// pairs brings the process back.
std::string Relocation::restore(std::vector<CUcheckpointGpuPair> pairs) {
  CUcheckpointRestoreArgs args{};
  args.gpuPairs = pairs.data();
  args.gpuPairsCount = static_cast<unsigned>(pairs.size());
  const CUresult refused = driver_.cuCheckpointProcessRestore(getpid(), &args);
  if (refused == CUDA_SUCCESS) return {};
  const CUresult back = driver_.cuCheckpointProcessRestore(getpid(), nullptr);
  lost_ = back != CUDA_SUCCESS;
  return lost_ ? failed("bring it back to its GPU", back)
               : failed("bring it to the other GPU", refused);
}

}  // namespace worker
