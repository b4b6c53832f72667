#include "native/worker/session/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <utility>

#include "native/worker/session/memory_file.h"

namespace worker {

namespace {

/// Maximum number of unclaimed files. Further files are closed.
constexpr std::size_t kMaxWaiting = 4096;

}  // namespace

std::uint64_t sealedSize(int file, int seals) {
  const int has = fcntl(file, F_GET_SEALS);  // -1 if the file cannot be sealed
  struct stat status {};
  return has >= 0 && (has & seals) == seals && fstat(file, &status) == 0
             ? static_cast<std::uint64_t>(status.st_size)
             : 0;
}

std::uint64_t pageBytes(int file) {
  struct statfs status {};
  if (fstatfs(file, &status) != 0) return 0;
  return status.f_type == HUGETLBFS_MAGIC ? static_cast<std::uint64_t>(status.f_bsize) : 4096;
}

SealedBytes::~SealedBytes() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), bytes_);
}

void SharedMemory::put(std::uint64_t id, int file) {
  const std::lock_guard lock(mutex_);
  if (files_.size() >= kMaxWaiting || !files_.emplace(id, file).second) ::close(file);
  arrived_.notify_all();
}

void SharedMemory::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  arrived_.notify_all();
}

int SharedMemory::take(std::uint64_t id) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return closed_ || files_.contains(id); });
  const auto found = files_.find(id);
  if (found == files_.end()) return -1;
  const int file = found->second;
  files_.erase(found);
  return file;
}

SealedBytes SharedMemory::takeSealed(std::uint64_t id) {
  const int file = take(id);
  if (file < 0) return {};
  const std::uint64_t bytes = sealedSize(file, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  void* data = bytes > 0 ? mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  ::close(file);
  return data != MAP_FAILED ? SealedBytes(static_cast<const std::byte*>(data), bytes)
                            : SealedBytes();
}

/// Whether a file may back the address, with `reserved` bytes there free.
bool SharedMemory::fits(int file, std::uint64_t address, std::uint64_t bytes,
                        std::uint64_t reserved) const {
  const auto next = mapped_.lower_bound(address);
  const bool free = (next == mapped_.end() || reserved <= next->first - address) &&
                    (next == mapped_.begin() ||
                     std::prev(next)->first + std::prev(next)->second.bytes <= address);
  const std::uint64_t page = pageBytes(file);
  return free && bytes > 0 && bytes <= reserved && page > 0 && address % page == 0 &&
         bytes % page == 0 && window.contains(address, reserved) &&
         sealedSize(file, F_SEAL_SHRINK) >= bytes;
}

bool SharedMemory::map(std::uint64_t id, std::uint64_t address, std::uint64_t bytes) {
  const int file = take(id);
  if (file < 0) return false;
  const std::lock_guard lock(mutex_);
  const bool done = fits(file, address, bytes, bytes) && wire::mapShared(address, bytes, file);
  ::close(file);
  if (done) mapped_[address] = {.bytes = bytes, .writable = true};
  return done;
}

int SharedMemory::setAside(std::uint64_t id, std::uint64_t address, std::uint64_t bytes,
                           std::uint64_t reserved) {
  const int file = take(id);
  if (file < 0) return -1;
  const std::lock_guard lock(mutex_);
  if (!fits(file, address, bytes, reserved)) return ::close(file), -1;
  mapped_[address] = {.bytes = reserved, .claimed = true};
  return file;
}

/// An old size of 0 makes the kernel keep the mapping that is shared, and make another one.
bool SharedMemory::mapAside(std::uint64_t address, std::uint64_t bytes, std::byte* pages) {
  const std::lock_guard lock(mutex_);
  void* const at = reinterpret_cast<void*>(address);
  if (mremap(pages, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) return false;
  mapped_[address] = {.bytes = bytes, .writable = true, .managed = true};
  return true;
}

void SharedMemory::unmapAside(std::uint64_t address, std::uint64_t reserved) {
  const std::lock_guard lock(mutex_);
  wire::unmapShared(address, reserved);
  mapped_[address] = {.bytes = reserved, .claimed = true};
}

SharedMemory::Mapping* SharedMemory::find(std::uint64_t address) {
  if (const auto found = mapped_.find(address); found != mapped_.end()) return &found->second;
  const auto found = registrations_.find(address);
  return found != registrations_.end() ? &found->second : nullptr;
}

bool SharedMemory::claim(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  Mapping* mapping = find(address);
  return mapping != nullptr && !mapping->managed && !std::exchange(mapping->claimed, true);
}

void SharedMemory::keep(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (Mapping* mapping = find(address)) mapping->claimed = false;
}

std::uint64_t SharedMemory::unmap(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = mapped_.find(address);
  if (found == mapped_.end()) return 0;
  const std::uint64_t bytes = found->second.bytes;
  wire::unmapShared(found->first, bytes);
  mapped_.erase(found);
  return bytes;
}

void SharedMemory::registered(std::uint64_t address, CUcontext context) {
  const std::lock_guard lock(mutex_);
  if (Mapping* mapping = find(address)) mapping->context = context;
}

void SharedMemory::ended(CUcontext context) {
  const std::lock_guard lock(mutex_);
  for (auto* all : {&mapped_, &registrations_}) {
    for (auto& [address, mapping] : *all) {
      if (mapping.context == context) mapping.context = nullptr;
    }
  }
}

bool SharedMemory::outlived(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const Mapping* mapping = find(address);
  return mapping != nullptr && mapping->context == nullptr;
}

const SharedMemory::Mapping* SharedMemory::around(std::uint64_t address,
                                                  std::uint64_t bytes) const {
  for (const auto* all : {&mapped_, &registrations_}) {
    auto next = all->upper_bound(address);
    if (next == all->begin()) continue;
    --next;
    const std::uint64_t offset = address - next->first;
    if (!next->second.claimed && offset < next->second.bytes &&
        bytes <= next->second.bytes - offset)
      return &next->second;
  }
  return nullptr;
}

bool SharedMemory::contains(std::uint64_t address, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return around(address, bytes) != nullptr;
}

bool SharedMemory::containsWritable(std::uint64_t address, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const Mapping* mapping = around(address, bytes);
  return mapping != nullptr && mapping->writable;
}

}  // namespace worker
