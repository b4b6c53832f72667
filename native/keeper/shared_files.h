// The files that a process shares with others: those that a checkpoint of it leaves out, and a
// keeper holds meanwhile. The worker and its keeper list them in the same order.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace keeper {

/// Both ends of the socket pair through which a process gets its files back. Not shared.
inline constexpr int kInside = 98;
inline constexpr int kOutside = 99;

/// Number of descriptors in a message through that socket. The message is the index of the first
/// one (std::uint32_t), in the order of SharedFiles: mappings before descriptors. The one behind
/// the last gets the answer to the command that returned the files.
inline constexpr std::size_t kFilesPerMessage = 16;
using Index = std::uint32_t;

/// As /proc/PID/maps names a file.
struct FileId {
  unsigned major;
  unsigned minor;
  std::uint64_t inode;

  bool operator==(const FileId&) const = default;
};

struct SharedMapping {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::uint64_t offset;
  int protection;
  FileId file;
};

/// Allocates no memory: the other threads of the process may be stopped while they do.
class SharedFiles {
 public:
  static constexpr std::size_t kMost = 4096;

  /// Lists those of the process: "self" or a pid. False if /proc cannot be read, or if there are
  /// more than kMost mappings or descriptors.
  bool read(const char* process);

  std::size_t mappings() const { return mappings_; }
  std::size_t descriptors() const { return descriptors_; }
  std::size_t all() const { return mappings_ + descriptors_; }
  const SharedMapping& mapping(std::size_t index) const { return mapping_[index]; }
  int descriptor(std::size_t index) const { return descriptor_[index]; }

 private:
  bool readMappings(const char* process);
  bool readDescriptors(const char* process);
  bool addDescriptor(const char* process, int file);

  std::size_t mappings_ = 0;
  std::size_t descriptors_ = 0;
  std::array<SharedMapping, kMost> mapping_;
  std::array<int, kMost> descriptor_;
};

/// The file that this process has mapped at the beginning of a mapping. Zeros if there is none.
FileId mappedFile(const void* begin);

}  // namespace keeper
