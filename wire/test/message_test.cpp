// Messages: whole however the socket cuts them, with their file, over blocking and non-blocking
// sockets; what breaks the format is refused, and no descriptor of a hostile peer stays open.
#include "wire/message.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "wire/test/check.h"

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

void sendsAndReceivesAnyLength(int flags) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kMaxMessageBytes}) {
    Sockets sockets(flags);
    const auto payload = pattern(bytes);
    std::thread sender([&] { CHECK(sendMessage(sockets.ends[0], MessageKind::text, 2, payload)); });
    Message message;
    CHECK(receiveMessage(sockets.ends[1], message));
    CHECK(message.header.kind == MessageKind::text && message.header.id == 2 &&
          message.payload == payload && message.file == -1);
    sender.join();
  }
  Sockets sockets(flags);
  CHECK(!sendMessage(sockets.ends[0], MessageKind::text, 0, pattern(kMaxMessageBytes + 1)));
}

void carriesAFile() {
  Sockets sockets;
  int pipe[2];
  CHECK(pipe2(pipe, O_CLOEXEC) == 0);
  CHECK(sendMessage(sockets.ends[0], MessageKind::memory, 5, pattern(10), pipe[1]));
  CHECK(sendMessage(sockets.ends[0], MessageKind::text, 6, pattern(3)));
  Message message;
  CHECK(receiveMessage(sockets.ends[1], message) && message.header.id == 5 && message.file >= 0);
  CHECK((fcntl(message.file, F_GETFD) & FD_CLOEXEC) != 0);
  char letter = 0;
  CHECK(write(message.file, "x", 1) == 1 && read(pipe[0], &letter, 1) == 1 && letter == 'x');
  close(message.file);
  CHECK(receiveMessage(sockets.ends[1], message) && message.header.id == 6 && message.file == -1);
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

void takesItByteByByte() {
  Sockets sockets;
  const auto bytes = wholeMessage(50);
  std::thread sender([&] {
    for (const std::byte byte : bytes) CHECK(write(sockets.ends[0], &byte, 1) == 1);
  });
  Message message;
  CHECK(receiveMessage(sockets.ends[1], message) && message.payload == pattern(50));
  sender.join();
}

void refusesAMessageCutAnywhere() {
  const auto bytes = wholeMessage(20);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    Sockets sockets;
    CHECK(write(sockets.ends[0], bytes.data(), cut) == static_cast<ssize_t>(cut));
    sockets.hangUp();
    Message message;
    CHECK(!receiveMessage(sockets.ends[1], message) && message.file == -1);
  }
}

void refusesFalseHeaders() {
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

void sendFiles(int socket, const void* data, std::size_t bytes, int count) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 32)] = {};
  iovec part{const_cast<void*>(data), bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
  cmsghdr* entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int) * count);
  for (int i = 0; i < count; ++i)
    std::memcpy(CMSG_DATA(entry) + i * sizeof(int), &socket, sizeof(int));
  CHECK(sendmsg(socket, &message, 0) == static_cast<ssize_t>(bytes));
}

void closesWhatItDoesNotHandOut() {
  const auto bytes = wholeMessage(20);
  for (const int count :
       {2, 8, 9, 32}) {  // one more than allowed, as many as there is room for, more than that
    Sockets sockets;
    const int before = openFiles();
    sendFiles(sockets.ends[0], bytes.data(), bytes.size(), count);
    Message message;
    CHECK(!receiveMessage(sockets.ends[1], message) && message.file == -1 && openFiles() == before);
  }
  Sockets sockets;  // one with the header, another with the payload
  const int before = openFiles();
  sendFiles(sockets.ends[0], bytes.data(), 16, 1);
  sendFiles(sockets.ends[0], bytes.data() + 16, 20, 1);
  Message message;
  CHECK(!receiveMessage(sockets.ends[1], message) && openFiles() == before);
}

void saysWhenThePeerIsGone() {
  Sockets sockets;
  sockets.hangUp();
  CHECK(!sendMessage(sockets.ends[1], MessageKind::text, 0, pattern(8)));
  Message message;
  CHECK(!receiveMessage(sockets.ends[1], message));
}

}  // namespace
}  // namespace wire

int main() {
  wire::sendsAndReceivesAnyLength(0);
  wire::sendsAndReceivesAnyLength(SOCK_NONBLOCK);
  wire::carriesAFile();
  wire::takesItByteByByte();
  wire::refusesAMessageCutAnywhere();
  wire::refusesFalseHeaders();
  wire::closesWhatItDoesNotHandOut();
  wire::saysWhenThePeerIsGone();
  return wire::test::checkedResult();
}
