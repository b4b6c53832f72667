// Table of what workers of an allocation export to each other, in a file that all of them map. A
// program knows an entry by its token, which means nothing outside of its allocation. The proxy
// clears the marks of a dead worker (gpu-proxy/src/allocations/export-table.ts).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace worker {

/// Thread-safe. An entry exists as long as a worker holds it. Only its owner can let others find
/// it.
class ExportTable {
 public:
  enum class Kind : std::uint32_t { memory = 1, event, physical, pool, poolPointer, memoryFile };
  using Token = std::array<std::byte, 16>;
  using Content = std::array<std::byte, 64>;
  static constexpr unsigned kEntries = 4096;
  static constexpr unsigned kWorkers = 240;

  ExportTable() = default;
  ~ExportTable();
  ExportTable(const ExportTable&) = delete;
  ExportTable& operator=(const ExportTable&) = delete;

  static constexpr unsigned kNone = ~0U;

  /// Maps the file. Returns an error message, or an empty string. `sockets`: where the workers have
  /// sockets, with a slash at the end.
  std::string open(const std::string& path, unsigned slot, const std::string& sockets = {});
  bool isOpen() const { return file_ != nullptr; }

  /// Where the worker in a slot offers files of its driver.
  std::string addressOf(unsigned slot) const { return sockets_ + "worker-" + std::to_string(slot); }
  std::string ownAddress() const { return addressOf(slot_); }

  /// Adds an entry that this worker owns. `group`: the entry that it belongs to, or kNone. Empty if
  /// the table is full.
  std::optional<unsigned> add(Kind kind, const Token& token, std::uint64_t bytes,
                              const Content& content, unsigned group = kNone);
  struct Found {
    unsigned entry;
    Kind kind;
    bool own;        ///< this worker owns it
    unsigned owner;  ///< slot
    std::uint64_t bytes;
    unsigned group;
    Content content;
  };
  /// Finds an entry, and marks it as held by this worker.
  std::optional<Found> hold(Kind kind, const Token& token);
  /// Nobody finds the entry any more.
  void close(unsigned entry);
  /// This worker does not hold the entry any more.
  void drop(unsigned entry);

  /// Bytes that are held, but not by their owners, whose charges have ended.
  std::uint64_t orphaned() const;

 private:
  struct File;
  File* file_ = nullptr;
  unsigned slot_ = 0;
  std::string sockets_;
};

/// A random token. False if the system has no random numbers.
bool makeToken(ExportTable::Token& token);

}  // namespace worker
