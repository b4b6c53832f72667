// Memory and events that this worker exports to workers of its allocation, or opened from them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "cuda_abi.h"
#include "native/worker/accounts/export_table.h"
#include "wire/file_offers.h"

namespace worker {

/// The 64 bytes that a program passes to another process: those of a CUipcMemHandle, of a
/// CUipcEventHandle and of CUmemPoolPtrExportData.
using SharedName = std::array<std::byte, 64>;

/// Thread-safe. `object`: an address of memory, an event, a pool, or the number of a physical
/// allocation.
class Sharing {
 public:
  explicit Sharing(ExportTable& table) : table_(table) {}

  /// Opens the directory that the workers of the allocation share, with the table of exports. The
  /// simulated driver gets its place in it through the environment. Call it while the process still
  /// sees the directory. Returns an error message, or an empty string.
  static std::string open(const std::string& directory, unsigned slot, ExportTable& table);

  bool possible() const { return table_.isOpen(); }
  /// Whether this worker has ever exported, or opened, memory of a pool: without a lock.
  bool sharesPools() const { return sharesPools_.load(std::memory_order_acquire); }

  /// Fetches the file of the driver that belongs to an export of another worker, or of this one; -1
  /// if its owner does not offer it any more.
  int fetchFile(const ExportTable::Found& found, const wire::FileKey& key) const;

  /// Exports an object that the driver knows by `content`, and returns its name; the same name for
  /// the same object. `bytes`: what its memory is charged with. Empty if the allocation exports too
  /// much.
  /// `group`: the entry of the pool of a pointer.
  std::optional<SharedName> share(ExportTable::Kind kind, std::uint64_t object, CUcontext context,
                                  std::uint64_t bytes, const SharedName& content,
                                  unsigned group = ExportTable::kNone);
  /// The entry of an object that is exported.
  std::optional<unsigned> entryOf(ExportTable::Kind kind, std::uint64_t object);
  /// The object is about to be freed: others cannot open it from now on.
  void ended(ExportTable::Kind kind, std::uint64_t object);

  /// Finds what `name` names, if a worker of this allocation exports it. Each success needs one
  /// release(), or opened().
  std::optional<ExportTable::Found> find(ExportTable::Kind kind, const SharedName& name);
  void release(const ExportTable::Found& found);

  /// The driver has opened memory: found is released when it is closed, or with its context.
  void opened(std::uint64_t address, CUcontext context, const ExportTable::Found& found);
  /// Removes one opening before the driver closes it, because another thread may get the address
  /// at once. The caller then releases it, or calls opened() again. Empty if unknown.
  struct Opening {
    ExportTable::Found found;
    CUcontext context;
  };
  std::optional<Opening> take(std::uint64_t address, ExportTable::Kind kind);

  void contextEnded(CUcontext context);

 private:
  struct Export {
    unsigned entry;
    CUcontext context;
    SharedName name;
    SharedName content;
  };
  struct Opened {
    Opening opening;
    unsigned references;
  };
  void releaseLocked(const ExportTable::Found& found);

  ExportTable& table_;
  std::atomic<bool> sharesPools_{false};
  std::mutex mutex_;
  std::map<std::pair<ExportTable::Kind, std::uint64_t>, Export> exports_;
  std::map<std::uint64_t, Opened> opened_;
  std::map<unsigned, unsigned> held_;  ///< entry -> number of find() without release()
};

}  // namespace worker
