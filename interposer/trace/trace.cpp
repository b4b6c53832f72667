#include "interposer/trace/trace.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "error_texts.h"
#include "interposer/code/kernels.h"
#include "interposer/session/callback.h"
#include "interposer/session/log.h"
#include "interposer/session/session.h"
#include "interposer/trace/arguments.h"
#include "interposer/trace/demangled.h"
#include "interposer/trace/environment.h"
#include "interposer/trace/events.h"
#include "interposer/trace/summary.h"
#include "interposer/trace/traced.h"
#include "interposer/trace/worker_timeline.h"

namespace interposer::trace {

namespace {

/// Longest time in microseconds for which a killed program's last events are lost.
constexpr useconds_t kFlushEvery = 100'000;
constexpr std::size_t kMostBuffered = 256 << 10;

std::string resultName(CUresult result) {
  for (const ErrorText& text : kErrorTexts)
    if (text.result == result) return text.name;
  return std::to_string(result);
}

/// The trace of one process. A forked child has its own.
class Trace {
 public:
  explicit Trace(bool summarise) : summarise_(summarise) {
    if (!path_.empty()) createFile();
    append(formatProcess(format_, process_, program_invocation_short_name));
  }

  bool isOfThisProcess() const { return process_ == getpid(); }

  /// False if it was called before.
  bool sessionOpened(bool summarise) {
    const std::lock_guard lock(mutex_);
    summarise_ = summarise_ || summarise;
    return !std::exchange(flushes_, true);
  }

  void add(const FinishedCall& call);
  /// Fetches what the worker has measured, and appends everything to the file. `last`: waits for
  /// work that has not ended.
  void flush(bool last);
  /// Prints the summary, when the program exits.
  void end();

 private:
  void createFile();
  void append(const std::string& text);
  void write();
  void noteKernels(const CallFacts& facts, const std::uint64_t* arguments);
  std::string nameOf(wire::HandleKind kind, std::uint64_t handle);
  void add(const wire::TimelineItem& item);

  const int process_ = getpid();
  const std::string path_{filePath()};
  const Format format_ = formatOf(path_);

  std::mutex fetching_;  ///< locked before the other
  std::mutex mutex_;     ///< guards all members below
  bool summarise_;
  bool flushes_ = false;  ///< a thread writes the buffer to the file
  bool ended_ = false;
  std::string buffer_;
  Summary summary_;
  std::map<std::uint64_t, std::string> kernels_;  ///< names; a kernel may be unloaded before its
                                                  ///< time is known
  std::set<std::pair<unsigned, std::uint64_t>> tracks_;  ///< streams that have a name in the file
  std::uint64_t lost_ = 0;
};

/// Never destroyed, because threads may call while the process exits.
std::atomic<Trace*> trace{nullptr};

/// The trace of this process. Call it only if calls are recorded.
Trace& ofThisProcess() {
  Trace* found = trace.load();
  if (found != nullptr && found->isOfThisProcess()) return *found;
  auto* fresh = new Trace(isSummaryWanted());
  if (trace.compare_exchange_strong(found, fresh)) return *fresh;
  delete fresh;
  return *found;
}

/// gpu-proxy has made the file, unless the variable was set by hand.
void Trace::createFile() {
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return;
  if (format_ == Format::json) [[maybe_unused]]
    const auto written = ::write(file, "[\n", 2);
  close(file);
}

void Trace::append(const std::string& text) {
  if (path_.empty()) return;
  buffer_ += text;
  if (buffer_.size() >= kMostBuffered || !flushes_ || ended_) write();
}

/// Opens the file each time: the program may close descriptors that it did not open.
void Trace::write() {
  if (buffer_.empty()) return;
  const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0 || ::write(file, buffer_.data(), buffer_.size()) < 0)
    log("cannot write the trace to %s: %s; set another file with --trace", path_.c_str(),
        std::strerror(errno));
  if (file >= 0) close(file);
  buffer_.clear();
}

void Trace::noteKernels(const CallFacts& facts, const std::uint64_t* arguments) {
  for (std::size_t i = 0; i < facts.parameters; ++i) {
    const Type& type = kTypes[kParameters[facts.firstParameter + i].type];
    if (type.kind == Kind::handle) nameOf(type.handle, arguments[i]);
  }
}

/// Name of a kernel or function. Takes the lock.
std::string Trace::nameOf(wire::HandleKind kind, std::uint64_t handle) {
  if (kind != wire::HandleKind::kernel && kind != wire::HandleKind::function) return {};
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = kernels_.find(handle); known != kernels_.end()) return known->second;
  }
  const Kernel* kernel = handle != 0 ? findKernel(handle) : nullptr;
  if (kernel == nullptr) return {};
  const std::lock_guard lock(mutex_);
  return kernels_[handle] = demangled(kernel->name);
}

void Trace::add(const FinishedCall& call) {
  const CallFacts& facts = kCalls[call.call];
  noteKernels(facts, call.arguments);
  std::string text;
  if (!path_.empty()) {
    const auto arguments = describeArguments(
        facts, call.arguments, call.result == CUDA_SUCCESS,
        [this](wire::HandleKind kind, std::uint64_t handle) { return nameOf(kind, handle); });
    const std::string result = resultName(call.result);
    text = format(format_,
                  CallEvent{textAt(facts.name), process_, static_cast<int>(syscall(SYS_gettid)),
                            call.begin, call.end, result, arguments});
  }
  const std::lock_guard lock(mutex_);
  summary_.addCall(textAt(facts.name), call.end - call.begin);
  append(text);
}

void Trace::add(const wire::TimelineItem& item) {
  if (item.call >= kWorkCount || item.end < item.begin) return;
  const WorkFacts& facts = kWorks[item.call];
  const auto kernel = kernels_.find(item.code);
  const std::string name = facts.work == Work::kernel && kernel != kernels_.end()
                               ? kernel->second
                               : "[" + std::string(textAt(facts.name)) + "]";
  constexpr std::string_view kKinds[] = {"", "kernel", "copy", "memset"};
  const WorkEvent event{name,        kKinds[static_cast<int>(facts.work)],
                        process_,    item.device,
                        item.stream, item.begin,
                        item.end,    item.bytes};
  summary_.addWork(name, item.end - item.begin);
  if (tracks_.emplace(item.device, item.stream).second) append(formatTrack(format_, event));
  append(format(format_, event));
}

void Trace::flush(bool last) {
  const std::lock_guard fetching(fetching_);
  std::vector<wire::TimelineItem> items;
  wire::Timeline answer{};
  do {
    answer = fetchTimeline(last, items);
    const std::lock_guard lock(mutex_);
    if (answer.lost > lost_) lost_ = answer.lost;
    for (const wire::TimelineItem& item : items) add(item);
  } while (answer.left > 0);
  const std::lock_guard lock(mutex_);
  write();
}

void Trace::end() {
  flush(true);
  const std::lock_guard lock(mutex_);
  ended_ = true;
  if (!summarise_ || summary_.empty()) return;
  const std::string table =
      summary_.table("nvidia-virtual: summary of " + std::string(program_invocation_short_name) +
                         " (process " + std::to_string(process_) + ")",
                     lost_);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, table.data(), table.size());
}

/// Calls before cuInit are recorded too. The trace begins with the first call: in a container, this
/// library is loaded into every program, and most use no GPU.
__attribute__((constructor)) void begin() {
  if (isWanted()) traceCalls();
}

__attribute__((destructor)) void finish() {
  if (Trace* found = trace.load(); found != nullptr && found->isOfThisProcess()) found->end();
}

}  // namespace

void record(const FinishedCall& call) { ofThisProcess().add(call); }

void sessionOpened() {
  const bool summarise = Session::current()->summarises();
  if (!isWanted() && !summarise) return;
  Trace& own = ofThisProcess();
  if (!own.sessionOpened(summarise)) return;
  traceCalls();
  startThread(
      [](void* started) -> void* {
        for (;; usleep(kFlushEvery)) static_cast<Trace*>(started)->flush(false);
      },
      &own);
}

}  // namespace interposer::trace
