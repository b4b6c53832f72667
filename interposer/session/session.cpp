#include "interposer/session/session.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "call_numbers.h"
#include "interposer/session/callback.h"
#include "interposer/session/log.h"
#include "interposer/trace/environment.h"
#include "wire/process_barrier.h"

extern char** environ;

namespace interposer {

namespace {

/// A page that is zero in a forked child (MADV_WIPEONFORK): this detects forks even without an
/// atfork handler.
struct ProcessState {
  std::uint32_t opened;  ///< 1 after the first cuInit; what the parent opened is not the child's
  Session* session;
};

/// Survives a fork: whether any ancestor of this process had opened a session.
std::atomic<bool> openedByAncestor{false};
std::mutex openMutex;
CUresult openResult = CUDA_ERROR_NOT_INITIALIZED;

ProcessState* processState() {
  static ProcessState* const state = [] {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    madvise(page, 4096, MADV_WIPEONFORK);
    return static_cast<ProcessState*>(page);
  }();
  return state;
}

/// The same path in every container, so that a shell without the container's environment finds it.
constexpr const char* kContainerSocket = "/run/nvidia-virtual/gpu.sock";

int connectTo(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
  std::strcpy(address.sun_path, path);
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return connection;
  const int error = errno;
  close(connection);
  return errno = error, -1;
}

/// Whether a retry may succeed: a proxy that restarts leaves its socket, and a container may start
/// before the proxy has made its socket.
bool mayComeSoon(const char* path, int error) {
  if (error != ENOENT) return error == ECONNREFUSED;
  const std::string directory(path, std::string_view(path).rfind('/') + 1);
  return access((directory + ".").c_str(), X_OK) == 0;
}

/// Longer in a container: there the proxy may be replaced by a newer version, which includes an
/// image pull.
constexpr int kConnectSeconds = 3, kConnectSecondsInContainer = 30;
constexpr useconds_t kBetweenAttempts = 20'000;

/// @param waited whether the proxy was away at first
int connectPatiently(const char* path, bool& waited) {
  const int seconds =
      std::strcmp(path, kContainerSocket) == 0 ? kConnectSecondsInContainer : kConnectSeconds;
  waited = false;
  for (int left = seconds * 1'000'000 / static_cast<int>(kBetweenAttempts);; --left) {
    const int connection = connectTo(path);
    const int error = errno;
    if (connection >= 0 || left == 0 || !mayComeSoon(path, error)) return errno = error, connection;
    waited = true;
    usleep(kBetweenAttempts);
  }
}

bool begins(const char* variable, std::string_view with) {
  return std::strncmp(variable, with.data(), with.size()) == 0;
}

bool isDriverVariable(const char* variable) {
  return begins(variable, "CUDA_") || begins(variable, "NVIDIA_VIRTUAL_SIMULATOR_CHECK=");
}

/// The environment that the driver reads when it starts.
std::string driverEnvironment() {
  std::string variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (isDriverVariable(*variable)) variables.append(*variable, std::strlen(*variable) + 1);
  }
  return variables;
}

bool reserveDeviceRanges() {
  bool all = true;
  for (const auto& range : wire::deviceRanges()) all = wire::reserve(range) && all;
  return all;
}

std::string helloPayload(const wire::AddressRange& window, bool hasDeviceRanges) {
  wire::Hello hello{};
  hello.version = wire::kHelloVersion;
  hello.buildId = kBuildId;
  hello.window = window;
  hello.traces = trace::isWanted() ? 1 : 0;
  hello.deviceRangesTaken = hasDeviceRanges ? 0 : 1;
  return std::string(reinterpret_cast<const char*>(&hello), sizeof hello) + driverEnvironment();
}

}  // namespace

const char* socketPath() {
  const char* path = secure_getenv("NVIDIA_VIRTUAL_SOCKET");
  return path != nullptr && *path != '\0' ? path : kContainerSocket;
}

Session* Session::current() { return processState()->session; }

CUresult Session::ready() {
  if (insideCallback()) return CUDA_ERROR_NOT_PERMITTED;
  return current() != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult Session::open() {
  const std::lock_guard lock(openMutex);
  if (insideCallback()) return CUDA_ERROR_NOT_PERMITTED;
  ProcessState* state = processState();
  if (state->opened != 0) return openResult;
  if (openedByAncestor.load())
    return CUDA_ERROR_NOT_INITIALIZED;  // a forked child of a process that uses CUDA: as natively
  auto* session = new Session;  // never destroyed: atexit handlers of the program still call us
  openResult = session->connect();
  state->opened = 1;
  if (openResult != CUDA_SUCCESS) return openResult;
  openedByAncestor.store(true);
  state->session = session;
  return CUDA_SUCCESS;
}

CUresult Session::connect() {
  const char* synchronous = secure_getenv("NVIDIA_VIRTUAL_SYNCHRONOUS");
  synchronous_ = synchronous != nullptr && std::strcmp(synchronous, "1") == 0;
  bool waited = false;
  if (!reach(waited)) return CUDA_ERROR_NO_DEVICE;
  if (!window.open()) {
    log("no address range is free for memory shared with the GPU worker; is the address space "
        "limited (ulimit -v)?");
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  hasDeviceRanges_ = reserveDeviceRanges();
  const std::string hello = helloPayload(window.range(), hasDeviceRanges_);
  wire::Message reply;
  if (!greetPatiently(hello, reply)) return CUDA_ERROR_NO_DEVICE;
  const CUresult status = takeWelcome(reply);
  if (status != CUDA_SUCCESS) return close(socket_), status;
  // Takes 30 ms in a program with threads; until then publishing a frame needs a fence.
  startThread([](void*) -> void* { return wire::registerForProcessBarriers(), nullptr; }, nullptr);
  const auto receive = [](void* session) -> void* {
    return static_cast<Session*>(session)->receiveMessages(), nullptr;
  };
  if (startThread(receive, this)) return CUDA_SUCCESS;
  log("no thread can be started that listens to the GPU worker; raise the container's limit of "
      "processes");
  return close(socket_), CUDA_ERROR_OUT_OF_MEMORY;
}

bool Session::greetPatiently(const std::string& hello, wire::Message& reply) {
  for (bool again = true; !greet(hello, reply);) {
    bool waited = false;
    if (!reach(waited)) return false;
    if (!waited && !again) {
      log("the GPU proxy at %s closed the connection before a worker answered: its log says why; "
          "start the program again",
          socketPath());
      return close(socket_), false;
    }
    again = waited;
  }
  return true;
}

bool Session::reach(bool& waited) {
  socket_ = connectPatiently(socketPath(), waited);
  if (socket_ >= 0) return true;
  log("no GPU: cannot connect to the GPU proxy at %s: %s. Start the program through `gpu-proxy "
      "run`, or check that the proxy runs",
      socketPath(), std::strerror(errno));
  return false;
}

bool Session::greet(const std::string& hello, wire::Message& reply) {
  if (wire::sendMessage(socket_, wire::MessageKind::hello, 0, std::as_bytes(std::span(hello))) &&
      wire::receiveMessage(socket_, reply) && reply.header.kind == wire::MessageKind::welcome &&
      reply.payload.size() >= sizeof(wire::Welcome)) {
    return true;
  }
  close(socket_);
  return false;
}

CUresult Session::takeWelcome(const wire::Message& reply) {
  wire::Welcome welcome{};
  std::memcpy(&welcome, reply.payload.data(), sizeof welcome);
  const std::byte* rest = reply.payload.data() + sizeof welcome;
  const std::size_t restBytes = reply.payload.size() - sizeof welcome;
  if (welcome.status != CUDA_SUCCESS) {
    log("%.*s", static_cast<int>(restBytes), reinterpret_cast<const char*>(rest));
    return static_cast<CUresult>(welcome.status);
  }
  if (welcome.buildId != kBuildId || welcome.devices > wire::kMaxDevices ||
      restBytes != welcome.devices * sizeof(wire::DeviceInfo)) {
    log("the GPU worker at %s is of another build than this libcuda.so.1; restart the program so "
        "that both are of the same build",
        socketPath());
    return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  }
  driverVersion_ = welcome.driverVersion;
  summarises_ = welcome.summarises != 0;
  faultDevice_ = reply.file;
  devices_.resize(welcome.devices);
  std::memcpy(devices_.data(), rest, restBytes);
  return devices_.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

bool Session::send(wire::MessageKind kind, std::uint64_t id, std::span<const std::byte> payload,
                   int file) {
  const std::lock_guard lock(sendMutex_);
  return !lost() && wire::sendMessage(socket_, kind, id, payload, file);
}

std::uint64_t Session::sendMemory(int file) {
  const std::uint64_t id = ++lastMemory_;
  return send(wire::MessageKind::memory, id, {}, file) ? id : 0;
}

std::unique_ptr<wire::ClientChannel> Session::openChannel(std::uint64_t id) {
  auto channel = wire::ClientChannel::create();
  if (channel == nullptr) {
    log("cannot create the memory shared with the GPU worker: %s; raise the container's memory "
        "limit, or its limit of open files",
        std::strerror(errno));
    return nullptr;
  }
  {
    const std::lock_guard lock(channelsMutex_);
    channels_.push_back(channel.get());
  }
  if (!send(wire::MessageKind::channel, id, {}, channel->file()))
    return forget(channel.get()), nullptr;
  channel->closeFile();
  return channel;
}

void Session::forget(wire::ClientChannel* channel) {
  const std::lock_guard lock(channelsMutex_);
  std::erase(channels_, channel);
}

void Session::receiveMessages() {
  wire::Message message;
  while (wire::receiveMessage(socket_, message)) {
    if (message.header.kind == wire::MessageKind::text) writeText(message);
    if (message.header.kind == wire::MessageKind::callback) receiveCallback(message);
    if (message.file >= 0) close(message.file);
  }
  lose();
}

/// The program may read what kernels printed before the function.
void Session::receiveCallback(const wire::Message& message) {
  wire::Callback callback{};
  if (message.payload.size() != sizeof callback) return;
  std::memcpy(&callback, message.payload.data(), sizeof callback);
  enqueueCallback([this, callback, id = message.header.id] {
    awaitText(callback.text);
    callProgram(callback);
    send(wire::MessageKind::callbackDone, id, {});
  });
}

/// Answers may arrive in another order than the worker gave them.
void Session::noteCaptures(std::uint64_t state) {
  std::uint64_t known = captures_.load();
  while (state >> 32 > known >> 32 && !captures_.compare_exchange_weak(known, state)) continue;
}

void Session::writeText(const wire::Message& message) {
  if (message.header.id == wire::kLogStream)
    asCallback([&] {
      logFromDriver(
          {reinterpret_cast<const char*>(message.payload.data()), message.payload.size()});
    });
  else
    std::fwrite(message.payload.data(), 1, message.payload.size(),
                message.header.id == 2 ? stderr : stdout);
  const std::lock_guard lock(textMutex_);
  text_.fetch_add(message.payload.size());
  textWritten_.notify_all();
}

void Session::awaitText(std::uint64_t position) {
  if (text_.load(std::memory_order_acquire) >= position) return;
  std::unique_lock lock(textMutex_);
  textWritten_.wait(lock, [&] { return text_.load() >= position || lost(); });
}

/// Every wait of every thread ends with CUDA_ERROR_DEVICE_UNAVAILABLE.
void Session::lose() {
  lost_.store(true, std::memory_order_release);
  log("the GPU worker of this process is gone: every further CUDA call fails. The proxy's log says "
      "why; start the program again");
  {
    const std::lock_guard lock(channelsMutex_);
    for (wire::ClientChannel* channel : channels_) channel->abandon();
  }
  const std::lock_guard lock(textMutex_);
  textWritten_.notify_all();
}

}  // namespace interposer
