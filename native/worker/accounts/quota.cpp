#include "native/worker/accounts/quota.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "wire/robust_mutex.h"

namespace worker {

/// Layout of the quota file, which gpu-proxy/src/allocations/quota.ts creates.
struct Quota::File {
  static constexpr std::uint32_t kMagic = 0x4e565131;  // "NVQ1"
  static constexpr std::uint32_t kVersion = 2;
  static constexpr unsigned kSlots = 240;

  struct Slot {
    std::uint64_t used;
    std::uint64_t peak;
    std::uint64_t pinned;  ///< bytes of pinned host memory
    std::atomic<std::uint32_t> handles;
    std::uint32_t threads;
  };

  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t limit;
  std::uint32_t mutexReady;
  std::uint8_t reserved[44];
  pthread_mutex_t mutex;  ///< robust: a worker may be killed while it holds it
  alignas(64) std::uint64_t peak;
  alignas(256) Slot slots[kSlots];

  /// The proxy clears slots without the lock, so each word is read once, atomically.
  template <class Word>
  std::uint64_t sum(Word Slot::*word) const {
    std::uint64_t total = 0;
    for (const Slot& slot : slots)
      total += std::atomic_ref(const_cast<Word&>(slot.*word)).load(std::memory_order_relaxed);
    return total;
  }
  std::uint64_t handles() const {
    std::uint64_t total = 0;
    for (const Slot& slot : slots) total += slot.handles.load(std::memory_order_relaxed);
    return total;
  }
};

std::string Quota::open(const std::string& path, unsigned slot, std::uint64_t limit) {
  static_assert(offsetof(File, mutex) == 64 && offsetof(File, peak) == 128 &&
                offsetof(File, slots) == 256 && sizeof(File) <= 8192);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(File))) {
    if (file >= 0) close(file);
    return "the quota file " + path +
           " cannot be used: " + (errno != 0 ? std::strerror(errno) : "it is too short");
  }
  void* mapped = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  auto* content = static_cast<File*>(mapped);
  if (mapped == MAP_FAILED || content->magic != File::kMagic ||
      content->version != File::kVersion || slot >= File::kSlots) {
    close(file);
    return "the quota file " + path + " is not of this version, or slot " + std::to_string(slot) +
           " is not in it";
  }
  flock(file, LOCK_EX);
  if (content->mutexReady == 0) wire::initialiseShared(content->mutex);
  content->mutexReady = 1;
  flock(file, LOCK_UN);
  close(file);
  file_ = content;
  slot_ = slot;
  limit_ = limit;
  return {};
}

Quota::~Quota() {
  if (file_ != nullptr) munmap(file_, sizeof(File));
}

std::uint64_t Quota::used() const {
  return (file_ != nullptr ? file_->sum(&File::Slot::used) : ownUsed_) + exports.orphaned();
}

std::uint64_t Quota::own() const {
  return file_ != nullptr
             ? std::atomic_ref(file_->slots[slot_].used).load(std::memory_order_relaxed)
             : ownUsed_;
}

std::uint64_t Quota::peak() const { return file_ != nullptr ? file_->slots[slot_].peak : ownPeak_; }

bool Quota::charge(std::uint64_t bytes) {
  if (tryCharge(bytes)) return true;
  refuse(bytes);
  return false;
}

bool Quota::tryCharge(std::uint64_t bytes) {
  if (chargeAtOnce(bytes)) return true;
  if (!reclaim_) return false;
  reclaim_();
  return chargeAtOnce(bytes);
}

void Quota::refuse(std::uint64_t bytes) const {
  if (refused_) refused_(bytes);
}

bool Quota::chargeUpTo(std::uint64_t limit, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) {
    ownUsed_ += bytes;
    ownPeak_ = std::max(ownPeak_, ownUsed_);
    return true;
  }
  const wire::Locked locked(file_->mutex);
  const std::uint64_t before = file_->sum(&File::Slot::used) + exports.orphaned();
  if (limit > 0 && (before > limit || bytes > limit - before)) return false;
  File::Slot& slot = file_->slots[slot_];
  std::atomic_ref(slot.used).store(slot.used + bytes, std::memory_order_relaxed);
  slot.peak = std::max(slot.peak, slot.used);
  file_->peak = std::max(file_->peak, before + bytes);
  return true;
}

/// Adds to a word of this worker's slot, or to `own` without a file. Returns false if the sum of
/// all slots would exceed the limit.
template <class Member, class Word>
bool Quota::add(Member member, Word& own, Word amount, std::uint64_t limit) {
  const std::lock_guard lock(mutex_);
  std::optional<wire::Locked> locked;
  if (file_ != nullptr) locked.emplace(file_->mutex);
  Word& word = file_ != nullptr ? file_->slots[slot_].*member : own;
  const std::uint64_t before = file_ != nullptr ? file_->sum(member) : own;
  if (before > limit || amount > limit - before) return false;
  std::atomic_ref(word).store(word + amount, std::memory_order_relaxed);
  return true;
}

template <class Member, class Word>
void Quota::subtract(Member member, Word& own, Word amount) {
  const std::lock_guard lock(mutex_);
  std::optional<wire::Locked> locked;
  if (file_ != nullptr) locked.emplace(file_->mutex);
  Word& word = file_ != nullptr ? file_->slots[slot_].*member : own;
  std::atomic_ref(word).store(word - std::min(word, amount), std::memory_order_relaxed);
}

void Quota::refund(std::uint64_t bytes) { subtract(&File::Slot::used, ownUsed_, bytes); }

bool Quota::chargePinned(std::uint64_t bytes, std::uint64_t limit) {
  return add(&File::Slot::pinned, ownPinned_, bytes, limit == 0 ? ~std::uint64_t{0} : limit);
}

void Quota::refundPinned(std::uint64_t bytes) { subtract(&File::Slot::pinned, ownPinned_, bytes); }

std::atomic<std::uint32_t>& Quota::handles() {
  return file_ != nullptr ? file_->slots[slot_].handles : ownHandles_;
}

bool Quota::handlesLeft(std::uint64_t limit) const {
  return (file_ != nullptr ? file_->handles() : ownHandles_.load()) < limit;
}

bool Quota::chargeThread(std::uint64_t limit) {
  return add(&File::Slot::threads, ownThreads_, 1u, limit);
}

void Quota::refundThread() { subtract(&File::Slot::threads, ownThreads_, 1u); }

void Quota::remember(std::uint64_t key, std::uint64_t bytes, const void* owner) {
  const std::lock_guard lock(mutex_);
  charges_[key] = {bytes, owner};
}

std::optional<Quota::Charge> Quota::find(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = charges_.find(key);
  return found == charges_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Quota::Charge> Quota::take(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = charges_.find(key);
  if (found == charges_.end()) return std::nullopt;
  const Charge charge = found->second;
  charges_.erase(found);
  return charge;
}

void Quota::forgetOwned(const void* owner) {
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(charges_, [&](const auto& entry) {
      const bool owned = entry.second.owner == owner;
      bytes += owned ? entry.second.bytes : 0;
      return owned;
    });
  }
  refund(bytes);
}

}  // namespace worker
