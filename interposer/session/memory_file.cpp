#include "interposer/session/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interposer/session/session.h"
#include "wire/anonymous_file.h"
#include "wire/encoder.h"

namespace interposer {

namespace {

bool writeAll(int file, std::span<const std::byte> bytes, std::size_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written <= 0) return false;
    bytes = bytes.subspan(written);
    offset += written;
  }
  return true;
}

}  // namespace

int createMemoryFile(std::size_t bytes) {
  const int file = wire::createAnonymousFile("nvidia-virtual", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0 &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
    return file;
  close(file);
  return -1;
}

SentMemory sendBytes(Session& session, std::span<const std::span<const std::byte>> pieces) {
  SentMemory sent;
  for (const auto& piece : pieces) sent.bytes += wire::Encoder::padded(piece.size());
  const int file = createMemoryFile(sent.bytes);
  if (file < 0) return {};
  std::size_t offset = 0;
  bool written = true;
  for (const auto& piece : pieces) {
    written = written && writeAll(file, piece, offset);
    offset += wire::Encoder::padded(piece.size());
  }
  if (written && fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) == 0)
    sent.id = session.sendMemory(file);
  close(file);
  return sent;
}

}  // namespace interposer
