#include "native/worker/session/session_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "call_numbers.h"
#include "native/worker/descriptors.h"
#include "native/worker/driver/devices.h"
#include "native/worker/driver/own_device.h"
#include "native/worker/driver/session_environment.h"
#include "native/worker/isolation/confinement.h"
#include "native/worker/reports/log.h"
#include "native/worker/reports/memory_size.h"

namespace worker {

std::string SessionStart::programName(pid_t pid) {
  char path[4096];
  const auto bytes = readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path, sizeof path);
  return bytes > 0 ? std::string(path, bytes) : std::string("unknown");
}

bool SessionStart::run() {
  wire::Message message;
  if (!wire::receiveMessage(kConnection, message) || !readHello(message)) return false;
  if (warm_ == nullptr) {
    const auto variables = std::span<const std::byte>(message.payload).subspan(sizeof hello_);
    adopt(sessionEnvironment(variables, options_));
  }
  if (!checkHello() || !giveUpRights() || !openDriver() || !chargeContext() || !giveUpSystemCalls())
    return refuse(), false;
  welcome();
  session_.forwardDriverLog();
  report();
  return true;
}

bool SessionStart::readHello(const wire::Message& message) {
  if (message.header.kind != wire::MessageKind::hello || message.payload.size() < sizeof hello_)
    return false;
  std::memcpy(&hello_, message.payload.data(), sizeof hello_);
  return true;
}

bool SessionStart::checkHello() {
  if (hello_.version != wire::kHelloVersion || hello_.buildId != kBuildId) {
    return fail(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
                "libcuda.so.1 of the program and the GPU worker are of different builds; restart "
                "the program");
  }
  // The range must hold only the client's memory. A warm worker has reserved it already.
  if (warm_ == nullptr && !wire::reserve(hello_.window))
    return fail(CUDA_ERROR_OUT_OF_MEMORY,
                "the address range of the program's pinned memory is taken in the worker");
  session_.shared.window = hello_.window;
  if (hello_.traces != 0 || options_.summary) session_.captures.trace();
  return true;
}

/// Opens /dev/userfaultfd for the client, with the rights that the worker gives up. Without it,
/// managed memory stays pinned.
void SessionStart::openFaultDevice() {
  if (!options_.movesManaged) return;
  faultDevice_ = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (faultDevice_ < 0)
    log("managed memory of this program stays in host memory: /dev/userfaultfd: %s",
        std::strerror(errno));
}

bool SessionStart::giveUpRights() {
  openFaultDevice();
  const std::string sentence = options_.uid ? becomeUser(*options_.uid) : std::string();
  return sentence.empty() || fail(CUDA_ERROR_NOT_PERMITTED, sentence);
}

/// Installs the seccomp filter after the driver has started, which needs the denied calls. No
/// client call is executed before.
bool SessionStart::giveUpSystemCalls() {
  const std::string sentence = confine();
  return sentence.empty() ||
         fail(CUDA_ERROR_NOT_PERMITTED,
              "the GPU worker cannot be confined, so it does not serve: " + sentence);
}

/// Whether the memory of cuMemAlloc can come from handles. vGPUs may not map them or share them by
/// file. With several GPUs, the driver refuses copies of a handle's memory that involve another GPU
/// than its own, unless peer access is on (two H200s).
bool SessionStart::mapsMemory() const {
  const auto has = [&](CUdevice_attribute attribute) {
    int supported = 0;
    return session_.driver.cuDeviceGetAttribute(&supported, attribute, 0) == CUDA_SUCCESS &&
           supported != 0;
  };
  return start_.devices.size() == 1 &&
         has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
         has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
}

/// Whether the simulated GPU checks the program's accesses: it knows exact bounds for memory of its
/// own cuMemAlloc only.
bool SessionStart::checksMemory() {
  const char* checks = std::getenv("NVIDIA_VIRTUAL_SIMULATOR_CHECK");
  return checks != nullptr && std::string_view(checks).find("memory") != std::string_view::npos;
}

bool SessionStart::openDriver() {
  if (warm_ != nullptr) {
    session_.driver = warm_->driver;
    session_.warmContext.hold(warm_->context);
    start_ = warm_->start;
  } else {
    start_ = startDriver(options_.driver, session_.driver);
    wanted_ = start_.hidden && hidesAll(options_.gpus);
    if (wanted_)
      fail(start_.status,
           "no GPU is visible to the program: its CUDA_VISIBLE_DEVICES names none of those that it "
           "may use");
  }
  if (start_.status == CUDA_SUCCESS) {
    present_ = uuidText(start_.devices.front().uuid);
    if (!options_.places.others.empty()) hideOtherPlaces();
    installMemory();
  }
  limitMemory(start_.devices, options_.memoryLimit);
  if (start_.status == CUDA_SUCCESS && !options_.mps.pipes.empty()) checkMps();
  return start_.status == CUDA_SUCCESS;
}

/// The program sees one GPU, which is the same for all its life.
void SessionStart::hideOtherPlaces() {
  showOnly(start_.devices, options_.gpus.front());
  allowFirstDeviceOnly(session_.driver);
}

void SessionStart::installMemory() {
  const bool exact = checksMemory() || !mapsMemory();
  session_.memory.install(session_.driver, exact);
  if (start_.devices.size() > 1)
    session_.swap.forbid("it sees several GPUs, and each may use the memory of the others");
  else if (exact)
    session_.swap.forbid("its GPU cannot map memory at chosen addresses");
  else if (!options_.mps.pipes.empty())
    session_.swap.forbid("it runs in concurrent mode, in which memory is not moved");
}

/// Logs if the driver has not joined MPS, because the driver itself continues silently. Older
/// drivers do not know the attribute; then nothing is logged.
void SessionStart::checkMps() {
  int shared = 1;
  session_.driver.cuDeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0);
  if (shared != 0) return;
  log("the driver did not join MPS through %s: kernels of this program do not run concurrently "
      "with others. Check that user %u can reach the directory, and that its server is not at its "
      "limit of clients",
      options_.mps.pipes.c_str(), static_cast<unsigned>(geteuid()));
}

/// Charges the context. It is not refunded, because the context lives as long as the process.
bool SessionStart::chargeContext() {
  if (session_.quota.charge(options_.contextCharge)) return true;
  return fail(CUDA_ERROR_OUT_OF_MEMORY,
              "the memory quota of " + formatMemorySize(session_.quota.limit()) +
                  " has no room for one more session: " + formatMemorySize(session_.quota.used()) +
                  " are in use, and its context takes " + formatMemorySize(options_.contextCharge) +
                  "; end another session, or ask for more memory");
}

void SessionStart::report() {
  const auto& device = start_.devices.front();
  const JsonObject gpu = JsonObject()
                             .add("name", std::string_view(device.name))
                             .add("uuid", present_)
                             .add("memory", device.totalMemory);
  session_.report.event("started",
                        JsonObject()
                            .add("pid", static_cast<std::uint64_t>(client_))
                            .add("program", std::string_view(program_))
                            .add("gpu", gpu)
                            .add("driverVersion", static_cast<std::uint64_t>(start_.version)));
}

bool SessionStart::fail(CUresult status, const std::string& sentence) {
  start_.status = status;
  start_.sentence = sentence;
  return false;
}

void SessionStart::answer(std::span<const std::byte> rest, std::uint32_t devices) {
  const wire::Welcome welcome{wire::kHelloVersion,
                              static_cast<std::int32_t>(start_.status),
                              kBuildId,
                              start_.version,
                              static_cast<std::uint16_t>(devices),
                              static_cast<std::uint16_t>(options_.summary ? 1 : 0)};
  std::string payload(reinterpret_cast<const char*>(&welcome), sizeof welcome);
  payload.append(reinterpret_cast<const char*>(rest.data()), rest.size());
  session_.connection.send(wire::MessageKind::welcome, 0, std::as_bytes(std::span(payload)),
                           faultDevice_);
  if (faultDevice_ >= 0) close(faultDevice_);
}

void SessionStart::welcome() {
  answer(std::as_bytes(std::span(start_.devices)),
         static_cast<std::uint32_t>(start_.devices.size()));
}

void SessionStart::refuse() {
  if (wanted_)
    session_.report.event(
        "ended",
        JsonObject().add("reason", start_.sentence).add("peakMemory", 0).add("launches", 0));
  else
    session_.report.event("refused", JsonObject().add("sentence", start_.sentence));
  answer(std::as_bytes(std::span(start_.sentence)), 0);
}

}  // namespace worker
