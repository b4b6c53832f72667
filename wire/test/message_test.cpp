// Messages arrive whole however the socket cuts them, with their file, over blocking and non-
// blocking sockets. Malformed ones are refused, and no descriptor of a hostile peer stays open.
#include "wire/message.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "test/unit/descriptors.h"

namespace wire {
namespace {

struct Sockets {
  int ends[2] = {-1, -1};
  explicit Sockets(int flags = 0) {
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends) == 0);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  ~Sockets() {
    hangUp();
    close(ends[1]);
  }
  void hangUp() {
    if (ends[0] >= 0) close(ends[0]);
    ends[0] = -1;
  }
};

int openFiles() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 31 >> 3);
  return data;
}

TEST_CASE("a message of any length up to the limit arrives") {
  for (const int flags : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    CAPTURE(flags);
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kMaxMessageBytes}) {
      Sockets sockets(flags);
      const auto payload = pattern(bytes);
      std::thread sender(
          [&] { CHECK(sendMessage(sockets.ends[0], MessageKind::text, 2, payload)); });
      Message message;
      CHECK(receiveMessage(sockets.ends[1], message));
      CHECK(message.header.kind == MessageKind::text);
      CHECK(message.header.id == 2);
      CHECK(message.payload == payload);
      CHECK(message.file == -1);
      sender.join();
    }
    Sockets sockets(flags);
    CHECK(!sendMessage(sockets.ends[0], MessageKind::text, 0, pattern(kMaxMessageBytes + 1)));
  }
}

TEST_CASE("a message carries a file") {
  Sockets sockets;
  int pipe[2];
  CHECK(pipe2(pipe, O_CLOEXEC) == 0);
  CHECK(sendMessage(sockets.ends[0], MessageKind::memory, 5, pattern(10), pipe[1]));
  CHECK(sendMessage(sockets.ends[0], MessageKind::text, 6, pattern(3)));
  Message message;
  CHECK(receiveMessage(sockets.ends[1], message));
  CHECK(message.header.id == 5);
  CHECK(message.file >= 0);
  CHECK((fcntl(message.file, F_GETFD) & FD_CLOEXEC) != 0);
  char letter = 0;
  CHECK(write(message.file, "x", 1) == 1);
  CHECK(read(pipe[0], &letter, 1) == 1);
  CHECK(letter == 'x');
  close(message.file);
  CHECK(receiveMessage(sockets.ends[1], message));
  CHECK(message.header.id == 6);
  CHECK(message.file == -1);
  close(pipe[0]);
  close(pipe[1]);
}

std::vector<std::byte> wholeMessage(std::size_t bytes) {
  const MessageHeader header{MessageKind::callback, static_cast<std::uint32_t>(bytes), 9};
  std::vector<std::byte> message(sizeof(header));
  std::memcpy(message.data(), &header, sizeof(header));
  const auto payload = pattern(bytes);
  message.insert(message.end(), payload.begin(), payload.end());
  return message;
}

TEST_CASE("a message that arrives byte by byte is whole") {
  Sockets sockets;
  const auto bytes = wholeMessage(50);
  std::thread sender([&] {
    for (const std::byte byte : bytes) CHECK(write(sockets.ends[0], &byte, 1) == 1);
  });
  Message message;
  CHECK(receiveMessage(sockets.ends[1], message));
  CHECK(message.payload == pattern(50));
  sender.join();
}

TEST_CASE("a message that is cut at any byte is refused") {
  const auto bytes = wholeMessage(20);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    Sockets sockets;
    CHECK(write(sockets.ends[0], bytes.data(), cut) == static_cast<ssize_t>(cut));
    sockets.hangUp();
    Message message;
    CHECK(!receiveMessage(sockets.ends[1], message));
    CHECK(message.file == -1);
  }
}

TEST_CASE("a header with a false kind or length is refused") {
  const MessageHeader headers[] = {
      {MessageKind{0}, 0, 0},
      {MessageKind{static_cast<std::uint32_t>(kLastMessageKind) + 1}, 0, 0},
      {MessageKind{~0u}, 0, 0},
      {MessageKind::text, kMaxMessageBytes + 1, 0},
      {MessageKind::text, ~0u, 0}};
  for (const MessageHeader& header : headers) {
    Sockets sockets;
    CHECK(write(sockets.ends[0], &header, sizeof(header)) == sizeof(header));
    Message message;
    CHECK(!receiveMessage(sockets.ends[1], message));
  }
}

void sendFiles(int socket, std::span<const std::byte> bytes, int count) {
  const std::vector<int> files(count, socket);
  CHECK(unit::sendWithFiles(socket, bytes, files) == static_cast<ssize_t>(bytes.size()));
}

TEST_CASE("descriptors of a refused message are closed") {
  const auto bytes = wholeMessage(20);
  for (const int count :
       {2, 8, 9, 32}) {  // more than one, as many as there is room for, more than that
    Sockets sockets;
    const int before = openFiles();
    sendFiles(sockets.ends[0], bytes, count);
    Message message;
    CHECK(!receiveMessage(sockets.ends[1], message));
    CHECK(message.file == -1);
    CHECK(openFiles() == before);
  }
  Sockets sockets;  // one file with the header, another with the payload
  const int before = openFiles();
  sendFiles(sockets.ends[0], std::span(bytes).first(16), 1);
  sendFiles(sockets.ends[0], std::span(bytes).subspan(16, 20), 1);
  Message message;
  CHECK(!receiveMessage(sockets.ends[1], message));
  CHECK(openFiles() == before);
}

TEST_CASE("sending and receiving fail once the peer is gone") {
  Sockets sockets;
  sockets.hangUp();
  CHECK(!sendMessage(sockets.ends[1], MessageKind::text, 0, pattern(8)));
  Message message;
  CHECK(!receiveMessage(sockets.ends[1], message));
}

}  // namespace
}  // namespace wire
