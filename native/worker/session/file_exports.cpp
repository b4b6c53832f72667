#include "native/worker/session/file_exports.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace worker {

namespace {

/// Whether the file may be watched. What a client sends may be any file, and polling some kinds
/// calls foreign code.
bool isUnixSocket(int file) {
  int domain = 0;
  socklen_t bytes = sizeof domain;
  return getsockopt(file, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

/// The key of the driver's file, and a value behind it.
template <class Value>
SharedName contentOf(const wire::FileKey& key, const Value& value) {
  static_assert(sizeof key + sizeof value <= sizeof(SharedName));
  SharedName content{};
  std::memcpy(content.data(), key.data(), key.size());
  std::memcpy(content.data() + key.size(), &value, sizeof value);
  return content;
}

template <class Value>
Value valueOf(const ExportTable::Found& found) {
  Value value;
  std::memcpy(&value, found.content.data() + sizeof(wire::FileKey), sizeof value);
  return value;
}

}  // namespace

FileExports::FileExports(Sharing& sharing, const ExportTable& table)
    : sharing_(sharing), table_(table), hangUps_(epoll_create1(EPOLL_CLOEXEC)) {}

wire::FileKey FileExports::keyOf(const ExportTable::Found& found) {
  wire::FileKey key;
  std::memcpy(key.data(), found.content.data(), key.size());
  return key;
}

std::uint64_t FileExports::idOf(const ExportTable::Found& found) {
  return valueOf<std::uint64_t>(found);
}

bool FileExports::offersMemory() {
  settle();
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(exports_, [](const auto& each) {
    return each.second.descriptors > 0 || each.second.offered;
  });
}

MovableMemory::Geometry FileExports::geometryOf(const ExportTable::Found& found) {
  return valueOf<MovableMemory::Geometry>(found);
}

std::optional<SharedName> FileExports::offerMemory(const Object& object, CUcontext context,
                                                   std::uint64_t bytes,
                                                   const MovableMemory::Geometry& geometry,
                                                   OwnedFile driverFile) {
  const std::lock_guard lock(mutex_);
  const auto [known, isNew] = exports_.try_emplace(object);
  Export& made = known->second;
  const bool offered =
      !isNew || (wire::makeFileKey(made.key) && offer(made.key, std::move(driverFile)));
  made.offered = offered;
  const auto name = offered ? sharing_.share(object.kind, object.id, context, bytes,
                                             contentOf(made.key, geometry))
                            : std::nullopt;
  if (name || !isNew) return name;
  if (offered) offers_->withdraw(made.key);
  exports_.erase(known);
  return name;
}

std::optional<SharedName> FileExports::nameLocked(const Object& object, std::uint64_t bytes) {
  const auto [known, isNew] = exports_.try_emplace(object);
  Export& made = known->second;
  const bool keyed = !isNew || wire::makeFileKey(made.key);
  const auto name =
      keyed ? sharing_.share(object.kind, object.id, nullptr, bytes, contentOf(made.key, object.id))
            : std::nullopt;
  if (!name && isNew) exports_.erase(known);
  return name;
}

std::optional<SharedName> FileExports::name(const Object& object, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return nameLocked(object, bytes);
}

bool FileExports::offer(const wire::FileKey& key, OwnedFile driverFile) {
  if (offers_ == nullptr) offers_ = new wire::FileOffers(table_.ownAddress());
  return offers_->offer(key, driverFile.release());
}

bool FileExports::watch(Watch watch) {
  const int socket = watch.socket.get();
  watches_.emplace(++last_, std::move(watch));
  epoll_event event{};  // a hang-up is reported without being asked for
  event.data.u64 = last_;
  if (epoll_ctl(hangUps_, EPOLL_CTL_ADD, socket, &event) == 0) return true;
  watches_.erase(last_);
  return false;
}

std::optional<SharedName> FileExports::add(const Object& object, std::uint64_t bytes,
                                           OwnedFile driverFile, OwnedFile watched,
                                           std::function<void()> ended) {
  if (!isUnixSocket(watched.get())) return std::nullopt;
  settle();
  const std::lock_guard lock(mutex_);
  if (watches_.size() >= kMost) return std::nullopt;
  any_.store(true);
  const auto name = nameLocked(object, bytes);
  if (!name) return std::nullopt;
  Export& made = exports_.at(object);
  if (made.descriptors == 0 && !offer(made.key, std::move(driverFile))) return std::nullopt;
  if (watch({object, std::move(watched), std::move(ended)})) return ++made.descriptors, name;
  if (made.descriptors == 0) offers_->withdraw(made.key);
  return std::nullopt;
}

void FileExports::settleAll() {
  constexpr int kAtOnce = 64;
  epoll_event events[kAtOnce];
  int count = kAtOnce;
  while (count == kAtOnce) {
    count = epoll_wait(hangUps_, events, kAtOnce, 0);
    for (int i = 0; i < count; ++i) hungUp(events[i].data.u64);
  }
}

/// The program may have kept a copy of the worker's end, so closing it would not end its polling.
void FileExports::forget(const Watch& watch) {
  epoll_ctl(hangUps_, EPOLL_CTL_DEL, watch.socket.get(), nullptr);
}

void FileExports::hungUp(std::uint64_t number) {
  std::function<void()> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto found = watches_.extract(number);
    if (found.empty()) return;  // by another thread
    forget(found.mapped());
    Export& of = exports_.at(found.mapped().object);
    if (--of.descriptors == 0) offers_->withdraw(of.key);
    ended = std::move(found.mapped().ended);
  }
  if (ended) ended();
}

void FileExports::ended(const Object& object) {
  const std::lock_guard lock(mutex_);
  const auto found = exports_.extract(object);
  if (found.empty()) return;
  const Export& made = found.mapped();
  if (made.offered || made.descriptors > 0) offers_->withdraw(made.key);
  std::erase_if(watches_, [&](const auto& entry) {
    if (entry.second.object != object) return false;
    forget(entry.second);
    return true;
  });
  sharing_.ended(object.kind, object.id);
}

}  // namespace worker
