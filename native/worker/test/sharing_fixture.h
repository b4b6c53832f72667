// An allocation and its workers, as far as they share something.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "native/worker/session/sharing.h"
#include "test/unit/program.h"

namespace worker::test {

/// The directory of an allocation, as the proxy makes it.
class Allocation {
 public:
  Allocation() {
    REQUIRE(mkdtemp(path_) != nullptr);
    const int file = open((directory() + "/exports").c_str(), O_CREAT | O_RDWR, 0600);
    const std::uint32_t header[2] = {0x4e565831, 1};
    REQUIRE(ftruncate(file, 256 + 4096 * 384) == 0);
    REQUIRE(write(file, header, sizeof header) == sizeof header);
    close(file);
  }
  ~Allocation() { [[maybe_unused]] const int status = system(("rm -r " + directory()).c_str()); }
  std::string directory() const { return path_; }

 private:
  char path_[32] = "/tmp/sharing-test-XXXXXX";
};

struct SharingWorker {
  SharingWorker(const Allocation& allocation, unsigned slot) {
    CHECK(Sharing::open(allocation.directory(), slot, table) == "");
  }
  ExportTable table;
  Sharing sharing{table};
};

}  // namespace worker::test
