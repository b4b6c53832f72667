#include "native/worker/gpus/inventory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "native/worker/driver/devices.h"
#include "native/worker/driver/driver_start.h"
#include "native/worker/driver/environment.h"
#include "native/worker/driver/simulated_state.h"
#include "native/worker/reports/log.h"
#include "native/worker/reports/report.h"

namespace worker {

namespace {

using Free = std::vector<std::uint64_t>;  ///< bytes of free memory, by device

/// Opens the state in this process: the simulated GPUs identify a process by its open file.
bool shareState(const Options& options) {
  const std::string sentence = shareSimulatedState(options.simulatedState);
  if (!sentence.empty()) log("%s", sentence.c_str());
  return sentence.empty();
}

/// The worker has a few bytes of the driver's memory in each context (memory/movable_memory.h).
bool takeFirstPage(const Driver& driver) {
  CUdeviceptr first = 0;
  return driver.cuMemAlloc_v2(&first, 1) == CUDA_SUCCESS;
}

/// Creates all primary contexts, then reads the free memory of each device. Empty if a context
/// cannot be created.
Free freeBesideContexts(const Driver& driver, const DriverStart& start,
                        std::vector<CUcontext>& contexts) {
  contexts.resize(start.devices.size());
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    if (driver.cuDevicePrimaryCtxRetain(&contexts[i], static_cast<CUdevice>(i)) != CUDA_SUCCESS ||
        driver.cuCtxSetCurrent(contexts[i]) != CUDA_SUCCESS || !takeFirstPage(driver))
      return {};
  }
  Free free;
  for (const CUcontext context : contexts) {
    size_t bytes = 0;
    size_t total = 0;
    if (driver.cuCtxSetCurrent(context) != CUDA_SUCCESS ||
        driver.cuMemGetInfo_v2(&bytes, &total) != CUDA_SUCCESS)
      return {};
    free.push_back(bytes);
  }
  return free;
}

std::uint64_t freeMemory(const Driver& driver) {
  size_t bytes = 0;
  size_t total = 0;
  return driver.cuMemGetInfo_v2(&bytes, &total) == CUDA_SUCCESS ? bytes : 0;
}

/// Median; 0 if empty.
std::uint64_t middle(std::vector<std::uint64_t>& found) {
  std::ranges::sort(found);
  return found.empty() ? 0 : found[found.size() / 2];
}

/// GPU memory per stream in bytes. Other processes may allocate or free meanwhile, so the median of
/// several batches is used.
std::uint64_t streamMemory(const Driver& driver, CUcontext context) {
  constexpr std::size_t kBatches = 3;
  constexpr std::size_t kStreams =
      64;  // memory is taken in pages of 2 MiB, so a batch has many streams
  std::vector<CUstream> streams;
  std::vector<std::uint64_t> taken;
  driver.cuCtxSetCurrent(context);
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    const std::uint64_t before = freeMemory(driver);
    CUstream stream = nullptr;
    while (streams.size() < (batch + 1) * kStreams &&
           driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
      streams.push_back(stream);
    const std::uint64_t after = freeMemory(driver);
    if (streams.size() == (batch + 1) * kStreams)
      taken.push_back(before > after ? before - after : 0);
  }
  for (const CUstream stream : streams) driver.cuStreamDestroy_v2(stream);
  return middle(taken) / kStreams;
}

constexpr char kAllocatingKernel[] = R"(.version 6.4
.target sm_52
.address_size 64
.extern .func (.param .b64 result) malloc (.param .b64 size);
.visible .entry allocate()
{
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 16;
  {
    .param .b64 size;
    .param .b64 result;
    st.param.b64 [size], %rd1;
    call.uni (result), malloc, (size);
  }
  ret;
})";

/// Loads a kernel that calls malloc into the current context, and runs it.
bool allocateInKernel(const Driver& driver) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  return driver.cuModuleLoadDataEx(&module, kAllocatingKernel, 0, nullptr, nullptr) ==
             CUDA_SUCCESS &&
         driver.cuModuleGetFunction(&function, module, "allocate") == CUDA_SUCCESS &&
         driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
             CUDA_SUCCESS &&
         driver.cuCtxSynchronize() == CUDA_SUCCESS;
}

std::uint64_t taken(std::uint64_t before, std::uint64_t after) {
  return before > after ? before - after : 0;
}

struct ContextCost {
  std::uint64_t context;
  std::uint64_t heap;  ///< bytes for malloc in kernels
};

/// GPU memory of a context and of its malloc heap, in bytes. Programs of a former gpu-proxy may
/// allocate or free meanwhile, so the median of several contexts is used. `first`: what the first
/// context of a process took.
ContextCost contextCost(const Driver& driver, CUdevice device, std::uint64_t first) {
  constexpr int kContexts = 3;
  std::vector<std::uint64_t> contexts = {first};
  std::vector<std::uint64_t> heaps;
  for (int i = 0; i < kContexts; ++i) {
    const std::uint64_t before = freeMemory(driver);
    CUcontext context = nullptr;
    if (driver.cuCtxCreate_v2(&context, 0, device) != CUDA_SUCCESS || !takeFirstPage(driver)) break;
    const std::uint64_t with = freeMemory(driver);
    contexts.push_back(taken(before, with));
    if (allocateInKernel(driver)) heaps.push_back(taken(with, freeMemory(driver)));
    driver.cuCtxDestroy_v2(context);
  }
  return {middle(contexts), middle(heaps)};
}

/// Free memory can be queried only in a context. So another process creates its contexts first, and
/// keeps them while this process creates its own. The difference in free memory is the size of one
/// process's context.
class OtherProcess {
 public:
  /// Call it before this process uses the driver, which does not survive a fork.
  explicit OtherProcess(const Options& options) {
    if (pipe(answer_) != 0 || pipe(release_) != 0) return;
    child_ = fork();
    if (child_ == 0) _exit(hold(options));
    close(answer_[1]);
    close(release_[0]);
  }
  ~OtherProcess() {
    close(answer_[0]);
    close(release_[1]);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;

  /// Waits for the result: one value per device, or none on failure.
  Free free() const {
    Free found;
    for (std::uint64_t bytes = 0; read(answer_[0], &bytes, sizeof bytes) == sizeof bytes;)
      found.push_back(bytes);
    return found;
  }

 private:
  int hold(const Options& options) {
    close(release_[1]);
    if (!shareState(options)) return 1;
    Driver driver{};
    const DriverStart start = startDriver(options.driver, driver);
    std::vector<CUcontext> contexts;
    const Free found =
        start.status == CUDA_SUCCESS ? freeBesideContexts(driver, start, contexts) : Free();
    const std::size_t bytes = found.size() * sizeof found[0];
    const bool told =
        bytes == 0 || write(answer_[1], found.data(), bytes) == static_cast<ssize_t>(bytes);
    close(answer_[1]);
    char none = 0;
    return told && read(release_[0], &none, 1) == 0 ? 0 : 1;
  }

  int answer_[2] = {-1, -1};
  int release_[2] = {-1, -1};
  pid_t child_ = -1;
};

}  // namespace

int printInventory(const Options& options) {
  adopt(driverEnvironment({}, options.gpus, false, options.mps));
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  const OtherProcess other(options);
  const Free before = other.free();
  if (!shareState(options)) return 1;
  Driver driver{};
  const DriverStart start = startDriver(options.driver, driver);
  if (start.status != CUDA_SUCCESS) return log("%s", start.sentence.c_str()), 1;
  std::vector<CUcontext> contexts;
  const Free after = freeBesideContexts(driver, start, contexts);
  if (after.empty() || before.size() != after.size())
    return log("a context cannot be created on each GPU: is one of them full, or in exclusive "
               "mode?"),
           1;

  std::vector<JsonObject> gpus;
  for (std::size_t i = 0; i < start.devices.size(); ++i) {
    const wire::DeviceInfo& device = start.devices[i];
    const std::uint64_t streams = streamMemory(driver, contexts[i]);
    const ContextCost cost =
        contextCost(driver, static_cast<CUdevice>(i), taken(before[i], after[i]));
    gpus.push_back(JsonObject()
                       .add("uuid", uuidText(device.uuid))
                       .add("index", i)
                       .add("name", std::string_view(device.name))
                       .add("memory", device.totalMemory)
                       .add("contextMemory", cost.context)
                       .add("streamMemory", streams)
                       .add("heapMemory", cost.heap));
  }
  const std::string line = JsonObject().add("gpus", gpus).text() + '\n';
  return write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0
                                                                                             : 1;
}

int printPresence(const Options& options) {
  adopt(driverEnvironment({}, options.gpus, false, {}));
  Driver driver{};
  const DriverStart start = startDriver(options.driver, driver);
  if (start.status != CUDA_SUCCESS) return log("%s", start.sentence.c_str()), 1;
  std::vector<JsonObject> gpus;
  for (const wire::DeviceInfo& device : start.devices)
    gpus.push_back(JsonObject().add("uuid", uuidText(device.uuid)));
  const std::string line = JsonObject().add("gpus", gpus).text() + '\n';
  return write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0
                                                                                             : 1;
}

}  // namespace worker
