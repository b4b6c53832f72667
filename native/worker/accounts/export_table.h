// What the workers of an allocation share with each other, in one file that all of them map. A
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
  enum class Kind : std::uint32_t { memory = 1, event };
  using Token = std::array<std::byte, 16>;
  using Content = std::array<std::byte, 64>;
  static constexpr unsigned kEntries = 4096;
  static constexpr unsigned kWorkers = 240;

  ExportTable() = default;
  ~ExportTable();
  ExportTable(const ExportTable&) = delete;
  ExportTable& operator=(const ExportTable&) = delete;

  /// Maps the file. Returns an error message, or an empty string.
  std::string open(const std::string& path, unsigned slot);
  bool isOpen() const { return file_ != nullptr; }

  /// Adds an entry that this worker owns. Empty if the table is full.
  std::optional<unsigned> add(Kind kind, const Token& token, std::uint64_t bytes,
                              const Content& content);
  struct Found {
    unsigned entry;
    bool own;        ///< this worker owns it
    unsigned owner;  ///< slot
    std::uint64_t bytes;
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
};

/// A random token. False if the system has no random numbers.
bool makeToken(ExportTable::Token& token);

}  // namespace worker
