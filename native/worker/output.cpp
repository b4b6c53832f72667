#include "native/worker/output.h"

#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <span>
#include <vector>

#include "native/worker/session.h"

namespace worker {

namespace {

struct Captured {
  Output* output;
  int stream;
};

ssize_t appendCaptured(void* cookie, const char* text, std::size_t bytes) {
  const auto* captured = static_cast<Captured*>(cookie);
  captured->output->append(captured->stream, {text, bytes});
  return static_cast<ssize_t>(bytes);
}

/// The driver prints through the C library's stream objects (seen on driver 580), so replacing those is enough and needs no pipe.
FILE* openCaptured(Output* output, int stream) {
  auto* captured = new Captured{output, stream};  // lives as long as the stream: for ever
  FILE* file = fopencookie(captured, "w", {.read = nullptr, .write = appendCaptured, .seek = nullptr, .close = nullptr});
  if (file != nullptr) std::setvbuf(file, nullptr, _IONBF, 0);
  return file;
}

}  // namespace

void Output::capture() {
  if (FILE* file = openCaptured(this, 1)) stdout = file;
  if (FILE* file = openCaptured(this, 2)) stderr = file;
}

void Output::log(std::string_view sentence) {
  const std::lock_guard lock(mutex_);
  if (waiting_ < kMostWaiting) put(wire::kLogStream, sentence.substr(0, kMostOfSentence));
}

void Output::append(int stream, std::string_view text) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return waiting_ < kMostWaiting; });
  put(stream, text);
}

void Output::put(int stream, std::string_view text) {
  waiting_ += text.size();
  if (pieces_.empty() || pieces_.back().stream != stream || stream == wire::kLogStream) pieces_.push_back({stream, {}});
  pieces_.back().text.append(text);
  if (pending_.exchange(true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
}

void Output::send(Session& session) {
  if (!pending_.load(std::memory_order_acquire)) return;
  const std::lock_guard order(sendMutex_);
  std::vector<Piece> pieces;
  {
    const std::lock_guard lock(mutex_);
    pieces.swap(pieces_);
    // Before whoever sees nothing waiting asks how far the text goes: a call's answer says so, and the client awaits it.
    position_.fetch_add(waiting_);
    waiting_ = 0;
    pending_.store(false);
  }
  room_.notify_all();
  for (const auto& piece : pieces) {
    auto rest = std::as_bytes(std::span(piece.text));
    while (!rest.empty()) {
      const auto part = rest.first(std::min<std::size_t>(rest.size(), std::size_t{1} << 20));
      session.send(wire::MessageKind::text, piece.stream, part);
      rest = rest.subspan(part.size());
    }
  }
}

}  // namespace worker
