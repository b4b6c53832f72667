// Orders and executes operations of streams. The calls are in stream.cpp.
#include <atomic>
#include <thread>
#include <utility>

#include "native/simulator/context.h"
#include "native/simulator/fault.h"
#include "native/simulator/stream.h"

namespace simulator {
namespace {

std::atomic<std::uint64_t> nextStreamId{1};

void execute(Operation& operation) {
  for (const auto& predecessor : operation.after) predecessor->wait();
  if (operation.run && (operation.always || fault() == CUDA_SUCCESS)) operation.run();
  operation.run = nullptr;  // frees its modules and buffers before the completion is visible
  operation.completion->finish();
}

void executeAll(const std::shared_ptr<Queue>& queue) {
  for (;;) {
    Operation operation;
    {
      std::unique_lock lock(queue->mutex);
      queue->changed.wait(lock, [&] { return queue->closed || !queue->operations.empty(); });
      if (queue->operations.empty()) return;
      operation = std::move(queue->operations.front());
      queue->operations.pop_front();
      if (queue->operations.size() == Queue::kMost - 1) queue->room.notify_all();
    }
    execute(operation);
  }
}

}  // namespace

Stream::Stream(Context& context_, unsigned flags_, int priority_)
    : context(context_), flags(flags_), priority(priority_), id(nextStreamId.fetch_add(1)) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->closed = true;
  }
  queue_->changed.notify_all();
}

std::vector<std::shared_ptr<const Completion>> Stream::predecessors() {
  std::vector<std::shared_ptr<const Completion>> before;
  const auto add = [&](const Stream& other) {
    if (&other != this && other.blocking() && other.last_ != nullptr && !other.last_->done())
      before.push_back(other.last_);
  };
  std::erase_if(context.awaited, [](const auto& operation) { return operation->done(); });
  before = context.awaited;
  if (context.legacy.get() == this) {
    for (const auto& stream : streamsOf(context)) add(*stream);
  } else if (blocking() && context.legacy != nullptr) {
    add(*context.legacy);
  }
  return before;
}

void Stream::startThread() {
  std::thread([queue = queue_] { executeAll(queue); }).detach();
  started_ = true;
}

void Stream::awaitRoom() {
  std::unique_lock lock(queue_->mutex);
  queue_->room.wait(lock, [&] { return queue_->operations.size() < Queue::kMost; });
}

void Stream::enqueue(Operation operation) {
  if (!started_) startThread();
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->operations.push_back(std::move(operation));
  }
  queue_->changed.notify_one();
}

std::shared_ptr<Completion> Stream::submit(Operation operation) {
  auto completion = std::make_shared<Completion>();
  operation.completion = completion;
  if (!operation.always) awaitRoom();
  const std::lock_guard order(context.submission);
  for (auto& predecessor : predecessors()) operation.after.push_back(std::move(predecessor));
  if (performed_ != nullptr && !performed_->done()) operation.after.push_back(performed_);
  if (!operation.run && operation.after.empty() && nothingPending()) {
    completion->finish();  // an empty operation, and all operations before it have ended
  } else {
    enqueue(std::move(operation));
  }
  last_ = completion;
  return completion;
}

bool Stream::performNow(const std::function<void()>& work) {
  std::shared_ptr<Completion> completion;
  {
    const std::lock_guard order(context.submission);
    if (!nothingPending() || !predecessors().empty()) return false;
    completion = std::make_shared<Completion>();
    last_ = performed_ = completion;
  }
  if (fault() == CUDA_SUCCESS) work();
  completion->finish();
  return true;
}

void Stream::perform(std::function<void()> work) {
  if (!performNow(work)) submit(std::move(work))->wait();
}

std::shared_ptr<Completion> Stream::submit(std::function<void()> run) {
  Operation operation;
  operation.run = std::move(run);
  return submit(std::move(operation));
}

bool Stream::idle() {
  const std::lock_guard order(context.submission);
  return nothingPending() && (context.legacy.get() != this || predecessors().empty());
}

void Stream::synchronize() {
  std::vector<std::shared_ptr<const Completion>> pending;
  {
    const std::lock_guard order(context.submission);
    if (context.legacy.get() == this) pending = predecessors();
    if (last_ != nullptr) pending.push_back(last_);
  }
  for (const auto& completion : pending) completion->wait();
}

std::shared_ptr<const Completion> Stream::last() {
  const std::lock_guard order(context.submission);
  return last_;
}

std::shared_ptr<const Completion> workOf(Context& context) {
  Operation all;
  for (const auto& stream : streamsOf(context)) {
    if (auto last = stream->last(); last != nullptr && !last->done())
      all.after.push_back(std::move(last));
  }
  return std::make_shared<Stream>(context, unsigned{CU_STREAM_NON_BLOCKING}, 0)
      ->submit(std::move(all));
}

void awaitInAll(Context& context, const std::shared_ptr<const Completion>& operation) {
  {
    const std::lock_guard order(context.submission);
    context.awaited.push_back(operation);
  }
  for (const auto& stream : streamsOf(context)) stream->submit(Operation{});  // busy until then
}

void Stream::retire() {
  Operation last;
  last.run = [self = shared_from_this()] {};
  last.always = true;
  submit(std::move(last));
}

}  // namespace simulator
