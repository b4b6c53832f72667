#include "native/worker/session/completion_word.h"

#include <sys/mman.h>

#include "wire/barrier.h"
#include "wire/wait.h"

namespace worker {

namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

CompletionWord::~CompletionWord() {
  // If the driver does not unregister the page, the GPU may still write it.
  if (word_ != nullptr && registration_.end()) munmap(word_, kPage);
}

bool CompletionWord::follow(CUstream stream, unsigned contextsEnded) {
  return prepare(contextsEnded) && enqueue(stream, word_, ++value_);
}

bool CompletionWord::follow(CUstream stream, const wire::WorkerChannel::EndOfWait& end) {
  return enqueue(stream, end.word, end.number);
}

bool CompletionWord::enqueue(CUstream stream, Word* word, std::uint64_t value) {
  awaited_ = word;
  awaitedValue_ = value;
  return driver_.cuStreamWriteValue64_v2 != nullptr &&
         driver_.cuStreamWriteValue64_v2(stream, reinterpret_cast<CUdeviceptr>(word), value, 0) ==
             CUDA_SUCCESS;
}

bool CompletionWord::await() const {
  const auto written = [this] { return wire::barrier::observe(*awaited_) == awaitedValue_; };
  return wire::spinUntil(wire::replySpinNanoseconds(), written, [] { return false; });
}

bool CompletionWord::prepare(unsigned contextsEnded) {
  if (registration_.holds(contextsEnded)) [[likely]]
    return true;
  if (registration_.refused()) return false;
  if (word_ == nullptr) {
    void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    word_ = static_cast<Word*>(page);
  }
  registration_.end();  // the context that registered it may still exist
  return registration_.begin(word_, kPage, contextsEnded);
}

}  // namespace worker
