#include "native/addon/process_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>

#include "native/addon/failure.h"

namespace addon {

namespace {

class ProcessWatches;

void deliver(Napi::Env env, Napi::Function, ProcessWatches* watches, void* id);
using Delivery = Napi::TypedThreadSafeFunction<ProcessWatches, void, deliver>;

/// The watches of one instance of the addon. All functions but wait() run on the event loop's
/// thread.
class ProcessWatches {
 public:
  explicit ProcessWatches(Napi::Env env)
      : epoll_(epoll_create1(EPOLL_CLOEXEC)), end_(eventfd(0, EFD_CLOEXEC)) {
    listen(end_, kEnd);
    delivery_ = Delivery::New(env, "watchProcess", 0, 1, this);
    delivery_.Unref(env);
    thread_ = std::thread([this] { wait(); });
    // Hooks run in reverse order: this one runs before that of `delivery_`, which must outlive the
    // thread.
    env.AddCleanupHook([this] { finish(); });
  }
  ProcessWatches(const ProcessWatches&) = delete;

  /// Returns the watch's id, or 0 with errno set if the process cannot be watched.
  std::uint64_t add(Napi::Env env, pid_t pid, const Napi::Function& ended) {
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0 && errno != ESRCH) return 0;
    const std::uint64_t id = ++last_;
    if (pidfd >= 0 && !listen(pidfd, id)) return close(pidfd), 0;
    if (watched_.empty()) delivery_.Ref(env);
    watched_.emplace(id, Watched{pidfd, Napi::Persistent(ended)});
    if (pidfd < 0)
      delivery_.NonBlockingCall(reinterpret_cast<void*>(id));  // the process has already exited
    return id;
  }

  /// Ends a watch and returns its callback; empty if it has ended already.
  Napi::FunctionReference remove(Napi::Env env, std::uint64_t id) {
    const auto found = watched_.find(id);
    if (found == watched_.end()) return {};
    Watched watched = std::move(found->second);
    watched_.erase(found);
    if (watched_.empty()) delivery_.Unref(env);
    if (watched.pidfd >= 0) {
      epoll_ctl(
          epoll_, EPOLL_CTL_DEL, watched.pidfd,
          nullptr);  // a child between fork and exec may hold a copy, which would keep it listed
      close(watched.pidfd);
    }
    return std::move(watched.ended);
  }

 private:
  struct Watched {
    int pidfd;  ///< -1: the process did not exist
    Napi::FunctionReference ended;
  };
  static constexpr std::uint64_t kEnd = 0;

  bool listen(int file, std::uint64_t id) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.u64 = id;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &event) == 0;
  }

  void wait() {
    for (;;) {
      epoll_event event{};
      const int count = epoll_wait(epoll_, &event, 1, -1);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 || event.data.u64 == kEnd) return;
      delivery_.NonBlockingCall(reinterpret_cast<void*>(event.data.u64));
    }
  }

  /// Called when the environment ends: stops the thread and closes all descriptors.
  void finish() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(end_, &one, sizeof one);
    thread_.join();
    delivery_.Release();
    for (auto& [id, watched] : watched_) {
      if (watched.pidfd >= 0) close(watched.pidfd);
    }
    watched_.clear();
    close(end_);
    close(epoll_);
  }

  int epoll_;
  int end_;
  Delivery delivery_;
  std::thread thread_;
  std::uint64_t last_ = kEnd;
  std::unordered_map<std::uint64_t, Watched> watched_;
};

void deliver(Napi::Env env, Napi::Function, ProcessWatches* watches, void* id) {
  if (static_cast<napi_env>(env) == nullptr) return;  // the environment is ending
  const Napi::FunctionReference ended = watches->remove(env, reinterpret_cast<std::uint64_t>(id));
  if (!ended.IsEmpty()) ended.Call({});
}

ProcessWatches& watchesOf(Napi::Env env) {
  auto* watches = env.GetInstanceData<ProcessWatches>();
  if (watches == nullptr) env.SetInstanceData(watches = new ProcessWatches(env));
  return *watches;
}

}  // namespace

Napi::Value watchProcess(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 2 || !info[0].IsNumber() || !info[1].IsFunction())
    return refuse(Napi::TypeError::New(env, "watchProcess needs a process id and a function"));
  const pid_t pid = info[0].As<Napi::Number>().Int32Value();
  ProcessWatches& watches = watchesOf(env);
  const std::uint64_t id = watches.add(env, pid, info[1].As<Napi::Function>());
  if (id == 0) return refuseErrno(env, "watchProcess of process " + std::to_string(pid));
  return Napi::Function::New(
      env, [&watches, id](const Napi::CallbackInfo& stop) { watches.remove(stop.Env(), id); });
}

}  // namespace addon
