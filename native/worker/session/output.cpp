#include "native/worker/session/output.h"

#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <span>
#include <vector>

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

/// The driver prints through the C library's FILE objects (seen on driver 580), so replacing them
/// suffices without a pipe.
FILE* openCaptured(Output* output, int stream) {
  auto* captured = new Captured{output, stream};  // never freed, like the stream
  FILE* file = fopencookie(
      captured, "w", {.read = nullptr, .write = appendCaptured, .seek = nullptr, .close = nullptr});
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
  if (pieces_.empty() || pieces_.back().stream != stream || stream == wire::kLogStream)
    pieces_.push_back({stream, {}});
  pieces_.back().text.append(text);
  if (pending_.exchange(true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
}

void Output::send(Connection& connection) {
  if (!pending_.load(std::memory_order_acquire)) return;
  const std::lock_guard order(sendMutex_);
  std::vector<Piece> pieces;
  {
    const std::lock_guard lock(mutex_);
    pieces.swap(pieces_);
    // Update the position before `pending_` is cleared. A reply carries the position, and the
    // client waits for the text up to there.
    position_.fetch_add(waiting_);
    waiting_ = 0;
    pending_.store(false);
  }
  room_.notify_all();
  for (const auto& piece : pieces) {
    auto rest = std::as_bytes(std::span(piece.text));
    while (!rest.empty()) {
      const auto part = rest.first(std::min<std::size_t>(rest.size(), std::size_t{1} << 20));
      connection.send(wire::MessageKind::text, piece.stream, part);
      rest = rest.subspan(part.size());
    }
  }
}

}  // namespace worker
