// nvidia-virtual-worker: executes the CUDA calls of one client process. The proxy starts it with the client's connection.
#include <dlfcn.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "call_numbers.h"
#include "native/worker/devices.h"
#include "native/worker/environment.h"
#include "native/worker/log.h"
#include "native/worker/options.h"
#include "native/worker/session.h"

namespace worker {

namespace {

constexpr int kConnection = 3;
constexpr int kReport = 4;
/// cuFuncGetParamInfo, cuKernelGetParamInfo: from driver 550 on.
constexpr int kOldestDriver = 12040;
constexpr int kNewestApi = 13000;

/// The hello, left unread: what follows may be a re-execution that reads it.
bool peekHello(wire::Hello& hello) {
  struct {
    wire::MessageHeader header;
    wire::Hello hello;
  } first{};
  if (recv(kConnection, &first, sizeof first, MSG_PEEK | MSG_WAITALL) != sizeof first || first.header.kind != wire::MessageKind::hello)
    return false;
  hello = first.hello;
  return true;
}

/// In the legacy layout nothing that the driver places can share an address with an ordinary client, whose mappings grow down from
/// 0x7fff…. A client that is in that layout itself is served from the default one.
void chooseLayout(const wire::Hello& hello, char** arguments) {
  const int present = personality(0xffffffff);
  const bool legacy = (present & ADDR_COMPAT_LAYOUT) != 0;
  if (present < 0 || legacy == (hello.deviceRangesTaken == 0)) return;
  if (personality(legacy ? present & ~ADDR_COMPAT_LAYOUT : present | ADDR_COMPAT_LAYOUT) < 0) {
    log("the system refuses to change the memory layout (personality: %s); going on without", std::strerror(errno));
    return;
  }
  execv("/proc/self/exe", arguments);
  log("cannot start again in another memory layout: %s", std::strerror(errno));
}

pid_t clientProcess() {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(kConnection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : -1;
}

/// Races with nothing: the connection is open, so a client that is gone already is seen there.
int openPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

std::string programName(pid_t pid) {
  char path[4096];
  const auto bytes = readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path, sizeof path);
  return bytes > 0 ? std::string(path, bytes) : std::string("unknown");
}

class Start {
 public:
  Start(const Options& options, Session& session) : options_(options), session_(session) {}

  /// Answers the hello; false when there is no session to serve.
  bool run(pid_t client) {
    wire::Message message;
    if (!wire::receiveMessage(kConnection, message) || !readHello(message)) return false;
    adoptEnvironment(std::span<const std::byte>(message.payload).subspan(sizeof hello_), options_.gpus);
    if (!checkHello() || !openDriver() || !describe()) return refuse(), false;
    welcome();
    session_.forwardDriverLog();
    const auto& device = devices_.front();
    const std::string_view gpuName = device.name;
    const JsonObject gpu = JsonObject().add("name", gpuName).add("uuid", uuidText(device.uuid)).add("memory", device.totalMemory);
    session_.report.event("started", JsonObject()
                                         .add("pid", static_cast<std::uint64_t>(client))
                                         .add("program", programName(client))
                                         .add("gpu", gpu)
                                         .add("driverVersion", static_cast<std::uint64_t>(version_)));
    return true;
  }

 private:
  bool readHello(const wire::Message& message) {
    if (message.header.kind != wire::MessageKind::hello || message.payload.size() < sizeof hello_) return false;
    std::memcpy(&hello_, message.payload.data(), sizeof hello_);
    return true;
  }

  bool checkHello() {
    if (hello_.version != wire::kHelloVersion || hello_.buildId != kBuildId) {
      return fail(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
                  "libcuda.so.1 of the program and the GPU worker are of different builds; restart the program");
    }
    // What lies there must be the client's only.
    if (!wire::reserve(hello_.window))
      return fail(CUDA_ERROR_OUT_OF_MEMORY, "the address range of the program's pinned memory is taken in the worker");
    session_.shared.window = hello_.window;
    return true;
  }

  bool openDriver() {
    void* library = dlopen(options_.driver.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return fail(CUDA_ERROR_NO_DEVICE, "the CUDA driver " + options_.driver + " cannot be loaded: " + dlerror());
    if (!load(library, session_.driver))
      return fail(CUDA_ERROR_NO_DEVICE, options_.driver + " is not a CUDA driver: functions are missing");
    const Driver& driver = session_.driver;
    const CUresult status = driver.cuInit(0);
    if (status == CUDA_ERROR_NO_DEVICE && std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) {
      wanted_ = true;
      return fail(status, std::string("no GPU is visible to the program: its CUDA_VISIBLE_DEVICES names none of those that it may use"));
    }
    if (status != CUDA_SUCCESS) {
      return fail(status, "the CUDA driver " + options_.driver + " does not start: " + name(status));
    }
    driver.cuDriverGetVersion(&version_);
    if (version_ < kOldestDriver) {
      return fail(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "the host's CUDA driver is too old: it speaks CUDA " +
                                                         std::to_string(version_ / 1000) + "." + std::to_string(version_ % 1000 / 10) +
                                                         ", and 12.4 (driver 550) is needed; update the driver of the node");
    }
    version_ = std::min(version_, kNewestApi);
    return true;
  }

  bool describe() {
    CUresult status = CUDA_SUCCESS;
    devices_ = describeDevices(session_.driver, options_.memoryLimit, status);
    if (status != CUDA_SUCCESS) return fail(status, "the CUDA driver does not describe its devices: " + name(status));
    if (devices_.empty()) return fail(CUDA_ERROR_NO_DEVICE, "the CUDA driver " + options_.driver + " has no device");
    return checkPageableAccess();
  }

  /// Asked of the driver itself: the client reads 0 whatever it says.
  bool checkPageableAccess() {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      int reachable = 0;
      session_.driver.cuDeviceGetAttribute(&reachable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, static_cast<CUdevice>(i));
      if (reachable == 0) continue;
      return fail(CUDA_ERROR_NOT_PERMITTED,
                  "the host lets kernels reach all memory of a process (HMM), so tenants could not be kept apart; load nvidia-uvm with "
                  "uvm_disable_hmm=1");
    }
    return true;
  }

  std::string name(CUresult result) const {
    const char* text = nullptr;
    return session_.driver.cuGetErrorName(result, &text) == CUDA_SUCCESS ? text : std::to_string(result);
  }

  bool fail(CUresult status, const std::string& sentence) {
    status_ = status;
    sentence_ = sentence;
    return false;
  }

  void answer(std::span<const std::byte> rest, std::uint32_t devices) {
    const wire::Welcome welcome{wire::kHelloVersion, static_cast<std::int32_t>(status_), kBuildId, version_, devices};
    std::string payload(reinterpret_cast<const char*>(&welcome), sizeof welcome);
    payload.append(reinterpret_cast<const char*>(rest.data()), rest.size());
    session_.send(wire::MessageKind::welcome, 0, std::as_bytes(std::span(payload)));
  }

  void welcome() { answer(std::as_bytes(std::span(devices_)), static_cast<std::uint32_t>(devices_.size())); }

  void refuse() {
    if (wanted_)
      session_.report.event("ended", JsonObject().add("reason", sentence_).add("peakMemory", 0).add("launches", 0));
    else
      session_.report.event("refused", JsonObject().add("sentence", sentence_));
    answer(std::as_bytes(std::span(sentence_)), 0);
  }

  const Options& options_;
  Session& session_;
  wire::Hello hello_{};
  int version_ = 0;
  CUresult status_ = CUDA_SUCCESS;
  std::string sentence_;
  bool wanted_ = false;  ///< the program asked for what it got: nothing that an administrator should look at
  std::vector<wire::DeviceInfo> devices_;
};

void reportEnd(Session& session, const std::string& reason) {
  JsonObject end;
  end.add("reason", reason).add("peakMemory", session.quota.peak()).add("launches", session.launches.total());
  const char* name = nullptr;
  if (session.fault() != CUDA_SUCCESS && session.driver.cuGetErrorName(session.fault(), &name) == CUDA_SUCCESS) {
    end.add("fault", std::string_view(name));
  }
  session.report.event("ended", end);
}

int run(int count, char** arguments) {
  Options options;
  std::string sentence;
  if (!parse(count, arguments, options, sentence)) return log("%s", sentence.c_str()), 2;
  wire::Hello hello{};
  if (!peekHello(hello)) return 0;  // somebody who connected and left, or spoke nothing that we know
  chooseLayout(hello, arguments);

  Report report(kReport);
  Quota quota;
  if (!options.quota.empty()) sentence = quota.open(options.quota, options.quotaSlot, options.memoryLimit);
  if (!sentence.empty()) return log("%s", sentence.c_str()), 1;

  // Neither is destroyed: threads of the session and of the driver use them until the process is gone.
  auto* session = new Session(kConnection, report, quota);
  const pid_t client = clientProcess();
  const int pidfd = openPidfd(client);
  if (!Start(options, *session).run(client)) _exit(0);  // refused, and said so to client and proxy
  if (!options.arbiter.empty()) session->gate.open(options.arbiter);
  reportEnd(*session, session->serve(pidfd));
  _exit(0);  // the driver's own exit handlers would wait for kernels that nobody needs any more
}

}  // namespace

}  // namespace worker

int main(int count, char** arguments) { return worker::run(count, arguments); }
