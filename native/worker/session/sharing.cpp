#include "native/worker/session/sharing.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace worker {

namespace {

using Kind = ExportTable::Kind;

/// Memory of another process holds whole pages.
std::uint64_t wholePages(std::uint64_t bytes) {
  constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
  return bytes > ~std::uint64_t{0} - kPage ? bytes : (bytes + kPage - 1) / kPage * kPage;
}

SharedName nameOf(const ExportTable::Token& token) {
  SharedName name{};
  std::ranges::copy(token, name.begin());
  return name;
}

}  // namespace

/// The directory's descriptor names it after it is hidden from this process.
std::string Sharing::open(const std::string& directory, unsigned slot, ExportTable& table) {
  constexpr int kAboveFixedNumbers = 64;  // the fixed numbers are in descriptors.h
  const int opened = ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int kept = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, kAboveFixedNumbers);
  if (opened >= 0) ::close(opened);
  if (kept < 0) return "the directory " + directory + " cannot be opened: " + std::strerror(errno);
  const std::string sockets = "/proc/self/fd/" + std::to_string(kept) + "/";
  setenv("NVIDIA_VIRTUAL_SIMULATED_SOCKET", (sockets + "driver-" + std::to_string(slot)).c_str(),
         1);
  return table.open(directory + "/exports", slot, sockets);
}

/// An object at the same address may be a new one, if the program freed the old one while it
/// exported it. The driver names it differently then.
std::optional<SharedName> Sharing::share(Kind kind, std::uint64_t object, CUcontext context,
                                         std::uint64_t bytes, const SharedName& content,
                                         unsigned group) {
  if (kind == Kind::poolPointer) sharesPools_.store(true);
  const std::lock_guard lock(mutex_);
  if (const auto known = exports_.find({kind, object}); known != exports_.end()) {
    // The driver may describe the same memory of a pool differently, and its end is always noted.
    if (kind == Kind::poolPointer || known->second.content == content) return known->second.name;
    table_.drop(known->second.entry);
    exports_.erase(known);
  }
  ExportTable::Token token{};
  if (!makeToken(token)) return std::nullopt;
  const auto entry = table_.add(kind, token, wholePages(bytes), content, group);
  if (!entry) return std::nullopt;
  const SharedName name = nameOf(token);
  exports_.emplace(std::pair(kind, object), Export{*entry, context, name, content});
  return name;
}

std::optional<unsigned> Sharing::entryOf(Kind kind, std::uint64_t object) {
  const std::lock_guard lock(mutex_);
  const auto known = exports_.find({kind, object});
  return known == exports_.end() ? std::nullopt : std::optional(known->second.entry);
}

int Sharing::fetchFile(const ExportTable::Found& found, const wire::FileKey& key) const {
  return wire::fetchFile(table_.addressOf(found.owner), key);
}

void Sharing::ended(Kind kind, std::uint64_t object) {
  const std::lock_guard lock(mutex_);
  if (const auto known = exports_.extract({kind, object})) table_.drop(known.mapped().entry);
}

std::optional<ExportTable::Found> Sharing::find(Kind kind, const SharedName& name) {
  ExportTable::Token token{};
  std::copy_n(name.begin(), token.size(), token.begin());
  if (nameOf(token) != name) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = table_.hold(kind, token);
  if (found) ++held_[found->entry];
  return found;
}

void Sharing::releaseLocked(const ExportTable::Found& found) {
  const auto held = held_.find(found.entry);
  if (held == held_.end() || --held->second > 0) return;
  held_.erase(held);
  if (!found.own) table_.drop(found.entry);
}

void Sharing::release(const ExportTable::Found& found) {
  const std::lock_guard lock(mutex_);
  releaseLocked(found);
}

void Sharing::opened(std::uint64_t address, CUcontext context, const ExportTable::Found& found) {
  const std::lock_guard lock(mutex_);
  if (found.kind == Kind::poolPointer) sharesPools_.store(true);
  const auto [known, isNew] = opened_.try_emplace(address, Opened{{found, context}, 0});
  ++known->second.references;
}

std::optional<Sharing::Opening> Sharing::take(std::uint64_t address, Kind kind) {
  const std::lock_guard lock(mutex_);
  const auto known = opened_.find(address);
  if (known == opened_.end() || known->second.opening.found.kind != kind) return std::nullopt;
  const Opening opening = known->second.opening;
  if (--known->second.references == 0) opened_.erase(known);
  return opening;
}

void Sharing::contextEnded(CUcontext context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(exports_, [&](const auto& each) {
    if (each.second.context != context) return false;
    table_.drop(each.second.entry);
    return true;
  });
  std::erase_if(opened_, [&](const auto& each) {
    const auto& [opening, references] = each.second;
    if (opening.context != context) return false;
    for (unsigned i = 0; i < references; ++i) releaseLocked(opening.found);
    return true;
  });
}

}  // namespace worker
