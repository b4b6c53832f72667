#include "wire/channel_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "wire/anonymous_file.h"

namespace wire {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool mapAt(std::byte* address, std::size_t bytes, int file, std::size_t offset) {
  return mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
              static_cast<off_t>(offset)) != MAP_FAILED;
}

}  // namespace

int createChannelFile() {
  const int file = createAnonymousFile("nvidia-virtual-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (ftruncate(file, kChannelFileBytes) == 0 && fcntl(file, F_ADD_SEALS, kSeals) == 0) return file;
  const int reason = errno;
  close(file);
  errno = reason;
  return -1;
}

bool isChannelFile(int file) {
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size != static_cast<off_t>(kChannelFileBytes))
    return false;
  return fcntl(file, F_GET_SEALS) == kSeals;
}

ChannelMemory* mapChannel(int file) {
  void* reserved = mmap(nullptr, sizeof(ChannelMemory), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(reserved);
  constexpr std::size_t ring = offsetof(ChannelMemory, ring);
  if (mapAt(begin, kChannelFileBytes, file, 0) &&
      mapAt(begin + kChannelFileBytes, kRequestBytes, file, ring)) {
    return reinterpret_cast<ChannelMemory*>(begin);
  }
  const int reason = errno;
  munmap(reserved, sizeof(ChannelMemory));
  errno = reason;
  return nullptr;
}

void unmapChannel(ChannelMemory* memory) {
  if (memory != nullptr) munmap(memory, sizeof(ChannelMemory));
}

}  // namespace wire
