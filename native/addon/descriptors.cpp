#include "native/addon/descriptors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "native/addon/failure.h"

namespace addon {

namespace {

constexpr std::uint32_t kMost = 16;

struct Descriptors {
  std::array<int, kMost> files{};
  std::uint32_t count = 0;
};

/// Reads the descriptors. False if there are too many, or an entry is not a number.
bool read(const Napi::Array& list, Descriptors& descriptors) {
  if (list.Length() > kMost) return false;
  for (; descriptors.count < list.Length(); ++descriptors.count) {
    const Napi::Value entry = list.Get(descriptors.count);
    if (!entry.IsNumber()) return false;
    descriptors.files[descriptors.count] = entry.As<Napi::Number>().Int32Value();
  }
  return true;
}

/// Waits until the socket is writable. False after the timeout in milliseconds.
bool awaitRoom(int socket, int milliseconds) {
  pollfd wait{socket, POLLOUT, 0};
  const bool ready = poll(&wait, 1, milliseconds) > 0;
  if (!ready) errno = EAGAIN;
  return ready;
}

bool send(int socket, void* payload, std::size_t bytes, const Descriptors& descriptors,
          int patience) {
  iovec part{payload, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))] = {};
  if (descriptors.count > 0) {
    const std::size_t length = descriptors.count * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(length);
    cmsghdr* entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(length);
    std::memcpy(CMSG_DATA(entry), descriptors.files.data(), length);
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 &&
           (errno == EINTR || (errno == EAGAIN && patience > 0 && awaitRoom(socket, patience))));
  return sent >= 0;
}

/// The address of a socket file. Its path may be longer than an address: the directory is named by
/// a descriptor.
class NearPath {
 public:
  explicit NearPath(const std::string& path) {
    const auto slash = path.rfind('/');
    directory_ = open(path.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    const std::string near = "/proc/self/fd/" + std::to_string(directory_) + path.substr(slash);
    name_.sun_family = AF_UNIX;
    near.copy(name_.sun_path, sizeof name_.sun_path - 1);
  }
  ~NearPath() { close(directory_); }
  NearPath(const NearPath&) = delete;
  NearPath& operator=(const NearPath&) = delete;

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&name_); }
  static constexpr socklen_t bytes() { return sizeof(sockaddr_un); }

 private:
  int directory_;
  sockaddr_un name_{};
};

}  // namespace

Napi::Value sendDescriptors(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 4 || !info[0].IsNumber() || !info[1].IsTypedArray() || !info[2].IsArray() ||
      !info[3].IsNumber())
    return refuse(Napi::TypeError::New(env,
                                       "sendDescriptors needs a file descriptor, a Uint8Array, an "
                                       "array of file descriptors and a number of milliseconds"));
  const int socket = info[0].As<Napi::Number>().Int32Value();
  auto payload = info[1].As<Napi::Uint8Array>();
  Descriptors descriptors;
  if (!read(info[2].As<Napi::Array>(), descriptors))
    return refuse(Napi::TypeError::New(
        env, "sendDescriptors takes at most 16 file descriptors, each a number"));
  if (!send(socket, payload.Data(), payload.ByteLength(), descriptors,
            info[3].As<Napi::Number>().Int32Value()))
    return refuseErrno(env, "sendDescriptors on file descriptor " + std::to_string(socket));
  return env.Undefined();
}

Napi::Value commandSocket(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 1 || !info[0].IsString())
    return refuse(Napi::TypeError::New(env, "commandSocket needs a path"));
  const std::string path = info[0].As<Napi::String>();
  const NearPath near(path);
  const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made >= 0 && bind(made, near.address(), near.bytes()) == 0)
    return Napi::Number::New(env, made);
  const int error = errno;
  close(made);
  return refuseErrno(env, "commandSocket " + path, error);
}

Napi::Value sendCommand(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Descriptors descriptors;
  if (info.Length() != 3 || !info[0].IsString() || !info[1].IsTypedArray() || !info[2].IsArray() ||
      !read(info[2].As<Napi::Array>(), descriptors))
    return refuse(Napi::TypeError::New(
        env, "sendCommand needs a path, a Uint8Array and an array of at most 16 file descriptors"));
  const std::string path = info[0].As<Napi::String>();
  auto payload = info[1].As<Napi::Uint8Array>();
  const NearPath near(path);
  const int sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool sent = sender >= 0 && connect(sender, near.address(), near.bytes()) == 0 &&
                    send(sender, payload.Data(), payload.ByteLength(), descriptors, 0);
  const int error = errno;
  close(sender);
  return sent ? env.Undefined() : refuseErrno(env, "sendCommand " + path, error);
}

Napi::Value pipe(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return refuseErrno(env, "pipe");
  const Napi::Array pair = Napi::Array::New(env, 2);
  pair.Set(0u, ends[0]);
  pair.Set(1u, ends[1]);
  return pair;
}

Napi::Value socketPair(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return refuseErrno(env, "socketPair");
  const Napi::Array pair = Napi::Array::New(env, 2);
  pair.Set(0u, ends[0]);
  pair.Set(1u, ends[1]);
  return pair;
}

}  // namespace addon
