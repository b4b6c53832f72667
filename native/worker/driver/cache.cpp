#include "native/worker/driver/cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "native/worker/descriptors.h"

namespace worker {

namespace {

int openNowhere() {
  char path[] = "/tmp/nvidia-virtual-no-cache-XXXXXX";
  if (mkdtemp(path) == nullptr) return -1;
  const int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  rmdir(path);
  return directory;
}

}  // namespace

std::string useCache(const std::string& directory) {
  const int file =
      directory.empty() ? openNowhere() : open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (file < 0)
    return "the cache directory " + directory + " cannot be used: " + std::strerror(errno);
  if (file == kCacheDirectory) return {};
  dup3(file, kCacheDirectory, O_CLOEXEC);
  close(file);
  return {};
}

}  // namespace worker
