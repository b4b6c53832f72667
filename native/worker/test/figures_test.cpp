// The figures file: only a valid one is opened, and the proxy finds the figures where it reads
// them.
#include "native/worker/reports/figures.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

std::string createFile(std::uint32_t magic, std::uint32_t version, off_t bytes) {
  char path[] = "/tmp/figures-test-XXXXXX";
  const int file = mkstemp(path);
  const std::uint32_t header[] = {magic, version};
  if (write(file, header, sizeof header) != sizeof header || ftruncate(file, bytes) != 0)
    std::abort();
  close(file);
  return path;
}

std::uint64_t word(const std::string& path, off_t offset) {
  const int file = open(path.c_str(), O_RDONLY);
  std::uint64_t value = 0;
  if (pread(file, &value, sizeof value, offset) != sizeof value) std::abort();
  close(file);
  return value;
}

TEST_CASE("figures are counted at their place in the file") {
  const std::string path = createFile(0x4e564631, 1, 4096);
  worker::FiguresFile file;
  worker::count(file.figures().launches);  // before the file is open: counted nowhere
  CHECK(file.open(path).empty());
  worker::Figures& figures = file.figures();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10000; ++n) worker::count(figures.launches);
    });
  }
  for (auto& thread : threads) thread.join();
  worker::count(figures.bytesDeviceToDevice, 5);
  worker::count(figures.pinned, 8);
  worker::discount(figures.pinned, 3);
  CHECK(word(path, 8) == 40000);
  CHECK(word(path, 32) == 5);
  CHECK(word(path, 80) == 5);
  for (const std::uint64_t nanoseconds : {0ull, 1ull, 1023ull, 1024ull, 1ull << 40})
    figures.sampleRoundTrip(nanoseconds);
  CHECK(word(path, 128) == 128);
  CHECK(word(path, 128 + 8 * 9) == 64);
  CHECK(word(path, 128 + 8 * 10) == 64);
  CHECK(word(path, 128 + 8 * 31) == 64);
  unlink(path.c_str());
}

TEST_CASE("a file that is no figures file is refused") {
  for (const std::string& path :
       {createFile(0x4e564631, 2, 4096), createFile(1, 1, 4096), createFile(0x4e564631, 1, 4095)}) {
    worker::FiguresFile file;
    CHECK(file.open(path).find(path) != std::string::npos);
    worker::count(file.figures().launches);
    unlink(path.c_str());
  }
  worker::FiguresFile file;
  CHECK(file.open("/nonexistent/figures").find("No such file") != std::string::npos);
}

}  // namespace
