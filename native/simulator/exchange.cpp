// The socket is in the directory that the worker names by NVIDIA_VIRTUAL_SIMULATED_SOCKET, because
// workers have network namespaces of their own. Without it, it is an abstract socket.
#include "native/simulator/exchange.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace simulator {
namespace {

std::string ownAddress() {
  if (const char* path = std::getenv("NVIDIA_VIRTUAL_SIMULATED_SOCKET"); path != nullptr)
    return path;
  wire::FileKey random{};
  wire::makeFileKey(random);
  std::string name = "@simulated-";
  for (int i = 0; i < 6; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned>(random[i]));
    name += byte;
  }
  return name;
}

wire::FileOffers& offers() {
  static auto& instance = *new wire::FileOffers(ownAddress());
  return instance;
}

std::string nameOf(const std::string& address) { return address.substr(address.rfind('/') + 1); }

/// The address of another process, whose socket is in the same directory.
std::string addressOf(const OfferedFile& file) {
  const std::string name(file.process, strnlen(file.process, sizeof file.process));
  if (name.starts_with('@')) return name;
  const std::string& own = offers().address();
  const bool plain = !name.empty() && name.find('/') == std::string::npos && name != "..";
  return plain && !own.starts_with('@') ? own.substr(0, own.rfind('/') + 1) + name : std::string();
}

}  // namespace

bool offerFile(int file, OfferedFile& name) {
  const std::string process = nameOf(offers().address());
  name = {};
  if (process.size() < sizeof name.process && wire::makeFileKey(name.key)) {
    std::memcpy(name.process, process.data(), process.size());
    return offers().offer(name.key, file);
  }
  close(file);
  return false;
}

void withdrawFile(const OfferedFile& name) { offers().withdraw(name.key); }

bool offeredHere(const OfferedFile& name) {
  return nameOf(offers().address()) ==
         std::string_view(name.process, strnlen(name.process, sizeof name.process));
}

int fetchFile(const OfferedFile& name) { return wire::fetchFile(addressOf(name), name.key); }

}  // namespace simulator
