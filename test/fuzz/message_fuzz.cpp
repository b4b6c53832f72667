// Arbitrary bytes and unexpected descriptors on the session socket: every message is complete, and
// no descriptor stays open.
#include "wire/message.h"

#include <fuzzer/FuzzedDataProvider.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "test/fuzz/require.h"

namespace {

int lowestFree() {
  const int file = dup(STDIN_FILENO);
  close(file);
  return file;
}

void sendPart(int socket, const std::vector<std::uint8_t>& bytes, int files) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)] = {};
  iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (files > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * files);
    cmsghdr* entry = CMSG_FIRSTHDR(&message);
    *entry = {CMSG_LEN(sizeof(int) * files), SOL_SOCKET, SCM_RIGHTS};
    for (int i = 0; i < files; ++i)
      std::memcpy(CMSG_DATA(entry) + i * sizeof(int), &socket, sizeof(int));
  }
  sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void sendHeader(int socket, FuzzedDataProvider& input) {
  const wire::MessageHeader header{
      static_cast<wire::MessageKind>(input.ConsumeIntegralInRange<std::uint32_t>(0, 10)),
      input.ConsumeIntegral<std::uint8_t>(), 0};
  std::vector<std::uint8_t> bytes(sizeof(header));
  std::memcpy(bytes.data(), &header, sizeof(header));
  sendPart(socket, bytes, input.ConsumeIntegralInRange(0, 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const int before = lowestFree();
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  while (input.remaining_bytes() > 0) {
    if (input.ConsumeBool()) {
      sendHeader(ends[0], input);
    } else {
      const int files = input.ConsumeIntegralInRange(-8, 16);
      sendPart(ends[0],
               input.ConsumeBytes<std::uint8_t>(input.ConsumeIntegralInRange<std::size_t>(1, 300)),
               files);
    }
  }
  shutdown(ends[0], SHUT_WR);
  wire::Message message;
  while (wire::receiveMessage(ends[1], message)) {
    REQUIRE(message.payload.size() == message.header.bytes);
    if (message.file >= 0) close(message.file);
  }
  REQUIRE(message.file == -1);
  close(ends[0]);
  close(ends[1]);
  REQUIRE(lowestFree() == before);
  return 0;
}
