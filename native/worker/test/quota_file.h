// An empty quota file, as the proxy makes one.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace worker::test {

/// Its path; the caller unlinks it.
inline std::string makeQuotaFile(std::uint32_t limit) {
  char path[] = "/tmp/quota-test-XXXXXX";
  const int file = mkstemp(path);
  const std::uint32_t header[4] = {0x4e565131, 2, limit, 0};
  if (ftruncate(file, 8192) != 0 || write(file, header, sizeof header) != sizeof header)
    std::abort();
  close(file);
  return path;
}

}  // namespace worker::test
