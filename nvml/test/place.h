// A directory with the page and the socket of a gpu-proxy that the test plays.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "nvml/abi.h"
#include "test/unit/program.h"

extern "C" {
nvml::Return nvmlShutdown();
nvml::Return nvmlDeviceGetHandleByIndex_v2(unsigned, nvml::Device*);
}

inline nvml::Device deviceOf(unsigned index) {
  nvml::Device device = nullptr;
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(index, &device) == nvml::kSuccess);
  return device;
}

/// The bytes of an answer, as the page has them.
template <class Value>
std::string hexOf(const Value& value) {
  std::string hex;
  for (const unsigned char byte :
       std::string(reinterpret_cast<const char*>(&value), sizeof value)) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    hex += digits;
  }
  return hex;
}

/// Directory of a socket, which the library finds by the environment.
class Place {
 public:
  Place() {
    char name[] = "/tmp/nvml-test-XXXXXX";
    directory_ = mkdtemp(name);
    setenv("NVIDIA_VIRTUAL_SOCKET", socket().c_str(), 1);
  }
  ~Place() {
    while (nvmlShutdown() == nvml::kSuccess) {
    }
    std::filesystem::remove_all(directory_);
  }

  std::string socket() const { return directory_ + "/gpu.sock"; }
  std::string page() const { return socket() + ".nvml"; }

  void publish(const std::string& lines) const {
    std::ofstream(page() + ".new") << "nvidia-virtual-gpus 1\n" << lines;
    std::filesystem::rename(page() + ".new", page());
  }

  /// Dates the page back.
  void age(std::chrono::seconds age) const {
    std::filesystem::last_write_time(page(), std::filesystem::file_time_type::clock::now() - age);
  }

  /// Listens at the socket. Returns the descriptor, which the caller closes.
  int listen() const {
    std::filesystem::remove(socket());
    const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, socket().c_str());
    REQUIRE(bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(server, 8) == 0);
    return server;
  }

 private:
  std::string directory_;
};
