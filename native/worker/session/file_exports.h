// What this worker exports by file descriptor. A program gets one end of a pair of sockets, and the
// worker the other one: it hangs up when the program's end is closed everywhere. The driver's own
// descriptor goes to other workers of the allocation only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "native/worker/memory/movable_memory.h"
#include "native/worker/session/owned_file.h"
#include "native/worker/session/sharing.h"
#include "wire/file_offers.h"

namespace worker {

/// Thread-safe. Never destroyed after the first add().
class FileExports {
 public:
  /// Limit on the descriptors of programs that are watched at a time.
  static constexpr std::size_t kMost = 1024;

  struct Object {
    ExportTable::Kind kind;
    std::uint64_t id;
    auto operator<=>(const Object&) const = default;
  };

  FileExports(Sharing& sharing, const ExportTable& table);
  ~FileExports() { close(hangUps_); }
  FileExports(const FileExports&) = delete;
  FileExports& operator=(const FileExports&) = delete;

  /// Exports an object until the program's end is closed everywhere; then calls `ended`. Workers
  /// that look up the name get `driverFile`. `watched`: the worker's end. Empty if that is no Unix
  /// socket, or if there are too many exports.
  std::optional<SharedName> add(const Object& object, std::uint64_t bytes, OwnedFile driverFile,
                                OwnedFile watched, std::function<void()> ended);
  /// Exports memory of cuMemAlloc until ended(). The same memory has the same name.
  std::optional<SharedName> offerMemory(const Object& object, CUcontext context,
                                        std::uint64_t bytes,
                                        const MovableMemory::Geometry& geometry,
                                        OwnedFile driverFile);
  /// The name of an object, which others cannot import before add().
  std::optional<SharedName> name(const Object& object, std::uint64_t bytes);
  /// The object is about to end: others cannot import it from now on.
  void ended(const Object& object);

  /// Whether other processes may have memory through a descriptor of a program.
  bool offersMemory();

  /// Whether there may be exports by descriptor.
  bool any() const { return any_.load(std::memory_order_acquire); }

  /// A descriptor that is readable if settle() has work.
  int hangUps() const { return hangUps_; }
  /// Ends the exports whose descriptors are closed.
  void settle() {
    if (any_.load(std::memory_order_acquire)) settleAll();
  }

  /// The key of the driver's file, and the id of the object, in an entry of the table.
  static wire::FileKey keyOf(const ExportTable::Found& found);
  static std::uint64_t idOf(const ExportTable::Found& found);
  /// How exported memory lies in the driver's file.
  static MovableMemory::Geometry geometryOf(const ExportTable::Found& found);

 private:
  struct Export {
    wire::FileKey key{};
    unsigned descriptors = 0;
    bool offered = false;  ///< whatever descriptors of programs there are
  };
  struct Watch {
    Object object;
    OwnedFile socket;
    std::function<void()> ended;
  };
  using Watches = std::map<std::uint64_t, Watch>;

  std::optional<SharedName> nameLocked(const Object& object, std::uint64_t bytes);
  bool watch(Watch watch);
  bool offer(const wire::FileKey& key, OwnedFile driverFile);
  void settleAll();
  void hungUp(std::uint64_t number);
  void forget(const Watch& watch);

  Sharing& sharing_;
  const ExportTable& table_;
  const int hangUps_;  ///< epoll
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  wire::FileOffers* offers_ = nullptr;
  std::map<Object, Export> exports_;
  Watches watches_;
  std::uint64_t last_ = 0;
};

}  // namespace worker
