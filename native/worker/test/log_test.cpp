// A worker logs a limited number of lines.
#include "native/worker/reports/log.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

TEST_CASE("the log ends with a line that says so") {
  const int file = memfd_create("log", 0);
  const int before = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  for (int i = 0; i < 3 * worker::kMostLines; ++i) worker::log("line %d", i);
  dup2(before, STDERR_FILENO);
  std::string text(lseek(file, 0, SEEK_END), '\0');
  CHECK(pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  CHECK(std::ranges::count(text, '\n') == worker::kMostLines + 1);
  CHECK(text.starts_with("line 0\nline 1\n"));
  CHECK(text.find("line 999\nmore lines of this session are not logged") != std::string::npos);
}
