#include "native/worker/accounts/export_table.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "wire/robust_mutex.h"

namespace worker {

/// Layout of the file, which gpu-proxy creates. The marks are bytes, because the proxy clears them
/// without the lock.
struct ExportTable::File {
  static constexpr std::uint32_t kMagic = 0x4e565831;  // "NVX1"
  static constexpr std::uint32_t kVersion = 1;

  enum Mark : std::uint8_t { none, user, owner };
  struct Entry {
    Token token;
    std::atomic<std::uint64_t> bytes;
    std::atomic<std::uint32_t> owner;  ///< slot
    Kind kind;
    Content content;
    std::atomic<std::uint8_t> marks[kWorkers];  ///< by slot
    std::uint32_t group;
    std::uint8_t reserved[44];

    bool isOwned() const { return marks[owner % kWorkers].load() == Mark::owner; }
    bool isHeld() const {
      return std::ranges::any_of(marks, [](const auto& mark) { return mark.load() != none; });
    }
  };

  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t mutexReady;
  std::atomic<std::uint32_t> used;  ///< number of entries ever used
  std::uint8_t reserved[48];
  pthread_mutex_t mutex;  ///< robust: a worker may be killed while it holds it
  alignas(256) Entry entries[kEntries];

  /// An entry that nobody holds; null if there is none. Requires the lock.
  Entry* freeEntry() {
    const std::uint32_t count = std::min(used.load(), kEntries);
    for (std::uint32_t i = 0; i < count; ++i)
      if (!entries[i].isHeld()) return &entries[i];
    if (count == kEntries) return nullptr;
    used.store(count + 1);
    return &entries[count];
  }
};

ExportTable::~ExportTable() {
  if (file_ != nullptr) munmap(file_, sizeof(File));
}

std::string ExportTable::open(const std::string& path, unsigned slot, const std::string& sockets) {
  static_assert(offsetof(File, mutex) == 64 && offsetof(File, entries) == 256 &&
                sizeof(File::Entry) == 384 && offsetof(File::Entry, marks) == 96);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  const bool sized =
      file >= 0 && fstat(file, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(File));
  void* mapped =
      sized ? mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  auto* content = static_cast<File*>(mapped);
  if (mapped == MAP_FAILED || content->magic != File::kMagic ||
      content->version != File::kVersion || slot >= kWorkers) {
    if (file >= 0) ::close(file);
    return "the table of exports " + path + " cannot be used, or has no slot " +
           std::to_string(slot);
  }
  flock(file, LOCK_EX);
  if (content->mutexReady == 0) wire::initialiseShared(content->mutex);
  content->mutexReady = 1;
  flock(file, LOCK_UN);
  ::close(file);
  file_ = content;
  slot_ = slot;
  sockets_ = sockets;
  return {};
}

std::optional<unsigned> ExportTable::add(Kind kind, const Token& token, std::uint64_t bytes,
                                         const Content& content, unsigned group) {
  const wire::Locked locked(file_->mutex);
  File::Entry* entry = file_->freeEntry();
  if (entry == nullptr) return std::nullopt;
  entry->bytes = bytes;
  entry->owner = slot_;
  entry->kind = kind;
  entry->group = group;
  entry->content = content;
  entry->token = token;
  entry->marks[slot_].store(File::owner);
  return static_cast<unsigned>(entry - file_->entries);
}

std::optional<ExportTable::Found> ExportTable::hold(Kind kind, const Token& token) {
  if (token == Token{}) return std::nullopt;
  const wire::Locked locked(file_->mutex);
  const std::uint32_t count = std::min(file_->used.load(), kEntries);
  for (unsigned i = 0; i < count; ++i) {
    File::Entry& entry = file_->entries[i];
    if (entry.token != token || entry.kind != kind || !entry.isOwned()) continue;
    const bool own = entry.owner == slot_;
    if (!own) entry.marks[slot_].store(File::user);
    return Found{i, kind, own, entry.owner, entry.bytes, entry.group, entry.content};
  }
  return std::nullopt;
}

void ExportTable::close(unsigned entry) {
  const wire::Locked locked(file_->mutex);
  file_->entries[entry].token = {};
}

void ExportTable::drop(unsigned entry) {
  const wire::Locked locked(file_->mutex);
  file_->entries[entry].marks[slot_].store(File::none);
}

std::uint64_t ExportTable::orphaned() const {
  if (file_ == nullptr) return 0;
  std::uint64_t bytes = 0;
  const std::uint32_t count = std::min(file_->used.load(), kEntries);
  for (unsigned i = 0; i < count; ++i) {
    const File::Entry& entry = file_->entries[i];
    // Without the lock: whoever adds an entry marks it last.
    if (entry.isHeld() && !entry.isOwned()) bytes += entry.bytes;
  }
  return bytes;
}

bool makeToken(ExportTable::Token& token) {
  return syscall(SYS_getrandom, token.data(), token.size(), 0) == static_cast<long>(token.size());
}

}  // namespace worker
