#include "native/worker/gate/arbiter_link.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "native/worker/reports/log.h"
#include "wire/received_files.h"
#include "wire/wait.h"

namespace worker {

namespace {

using arbiter::kMailboxBytes;
using arbiter::Mailbox;

/// Must equal the arbiter's value (schedule.h, Timing::queue).
constexpr std::uint32_t kQueueNanoseconds = 2'000'000;

/// An unconnected socket.
int unconnected() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

void* mapPage(int memory) {
  const int flags = memory < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  return mmap(nullptr, kMailboxBytes, PROT_READ | PROT_WRITE, flags, memory, 0);
}

/// Replaces the page at `place` atomically: concurrent readers see the old or the new one.
bool replace(void* place, void* page) {
  return mremap(page, kMailboxBytes, kMailboxBytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place;
}

}  // namespace

ArbiterLink::ArbiterLink() : mailbox_(static_cast<Mailbox*>(mapPage(-1))), file_(unconnected()) {}

ArbiterLink::~ArbiterLink() {
  munmap(mailbox_, kMailboxBytes);
  close(file_);
}

bool ArbiterLink::connect(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) return false;
  std::memcpy(name.sun_path, path.data(), path.size());
  if (::connect(file_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return false;
  connected_ = true;
  constexpr char kFirst[] = "worker 1\n";
  send(file_, kFirst, sizeof kFirst - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  return true;
}

void ArbiterLink::await() {
  rule_ = Rule::awaited;
  mailbox_->grant = arbiter::nextWord(0, arbiter::Grant::closed);
}

void ArbiterLink::rule(arbiter::Grant grant) {
  mailbox_->grant.store(arbiter::nextWord(mailbox_->grant.load(), grant));
  ++changes_;
  wire::futexWakeAll(changes_);
}

void ArbiterLink::poke() const { send(file_, "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT); }

bool ArbiterLink::receive() {
  char bytes[64];
  std::vector<int> files;
  const ssize_t count =
      wire::receiveWithFiles(file_, bytes, sizeof bytes, files, MSG_DONTWAIT).bytes;
  if (count < 0 && errno == EAGAIN) return true;
  const int memory = wire::keepFirst(files);
  if (count <= 0) return disconnect(), false;
  if (memory < 0) return true;
  const bool mapped = map(memory);
  close(memory);
  if (mapped) return true;
  log("the arbiter of GPU time has another version; this session is not limited to its share until "
      "both have the same version");
  return lift(), true;
}

bool ArbiterLink::map(int memory) {
  struct stat about;
  if (fstat(memory, &about) != 0 || about.st_size != static_cast<off_t>(kMailboxBytes))
    return false;
  void* page = mapPage(memory);
  if (page == MAP_FAILED) return false;
  const auto* offered = static_cast<const Mailbox*>(page);
  if (offered->magic != arbiter::kMailboxMagic || offered->version != arbiter::kMailboxVersion)
    return munmap(page, kMailboxBytes), false;
  return replaceBy(page, Rule::arbiter), true;
}

void ArbiterLink::replaceBy(void* page, Rule rule) {
  replace(mailbox_, page);
  rule_ = rule;
  ++changes_;
  wire::futexWakeAll(changes_);
}

/// Opens the gate to all work.
void ArbiterLink::lift() {
  shareWithoutArbiter_ = 0;
  rule_ = Rule::away;
  rule(arbiter::Grant::open);
}

/// A session without a first grant keeps waiting. A session with a fixed share limits itself from
/// now on; any other passes.
void ArbiterLink::disconnect() {
  connected_ = false;
  if (isRuled()) {
    shareWithoutArbiter_ = mailbox_->shareWithoutArbiter.load();
    const auto grant = shareWithoutArbiter_ == 0 ? arbiter::Grant::open : arbiter::Grant::closed;
    const std::uint32_t word = arbiter::nextWord(mailbox_->grant.load(), grant);
    mailbox_->grant.store(word);
    wire::futexWakeAll(mailbox_->grant);
    void* page = mapPage(-1);
    auto* own = static_cast<Mailbox*>(page);
    own->grant = word;
    own->queueNanoseconds = kQueueNanoseconds;
    replaceBy(page, Rule::away);
  }
  const int fresh = unconnected();
  dup3(fresh, file_, O_CLOEXEC);
  close(fresh);
}

}  // namespace worker
