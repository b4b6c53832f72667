#include "native/simulator/memory_user.h"

#include <limits>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace simulator {
namespace {

constexpr std::uint64_t kEnded = std::numeric_limits<std::uint64_t>::max();

struct Users {
  std::mutex mutex;
  std::unordered_set<std::shared_ptr<std::atomic<std::uint64_t>>> known;
};

/// Never destroyed: a kernel may run when the process exits.
Users& users() {
  static auto& all = *new Users;
  return all;
}

}  // namespace

MemoryUser::MemoryUser() {
  Users& all = users();
  const std::lock_guard lock(all.mutex);
  seen_ = revocations.load(std::memory_order_acquire);
  known_ = std::make_shared<Known>(seen_);
  all.known.insert(known_);
}

MemoryUser::~MemoryUser() {
  acknowledge(kEnded);
  Users& all = users();
  const std::lock_guard lock(all.mutex);
  all.known.erase(known_);
}

void MemoryUser::acknowledge(std::uint64_t revocation) {
  seen_ = revocation;
  known_->store(revocation, std::memory_order_release);
  known_->notify_all();
}

/// A user that registers later has taken the mutex later, so it knows the revocation.
void revokeMemory() {
  const std::uint64_t revocation = MemoryUser::revocations.fetch_add(1) + 1;
  std::vector<std::shared_ptr<MemoryUser::Known>> known;
  {
    Users& all = users();
    const std::lock_guard lock(all.mutex);
    known.assign(all.known.begin(), all.known.end());
  }
  for (const auto& user : known) {
    for (std::uint64_t seen; (seen = user->load(std::memory_order_acquire)) < revocation;)
      user->wait(seen, std::memory_order_acquire);
  }
}

}  // namespace simulator
