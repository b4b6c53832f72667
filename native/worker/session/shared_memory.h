// Memory files from the client: long arguments of calls, and pinned memory, which is mapped at the
// client's address.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "cuda_abi.h"
#include "wire/address_window.h"

namespace worker {

/// The content of a sealed memory file; unmapped with this object.
class SealedBytes {
 public:
  SealedBytes() = default;
  SealedBytes(const std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  SealedBytes(SealedBytes&& other) noexcept { swap(other); }
  SealedBytes& operator=(SealedBytes&& other) noexcept { return swap(other), *this; }
  ~SealedBytes();
  std::span<const std::byte> content() const { return {data_, bytes_}; }

 private:
  void swap(SealedBytes& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Range of addresses for the client's pinned memory.
  wire::AddressRange window;

  /// Takes ownership of a file from the socket.
  void put(std::uint64_t id, int file);
  /// The connection has ended: no more files will arrive.
  void close();

  /// Waits for the file, which the caller owns; -1 if it never arrives.
  int take(std::uint64_t id);

  /// Waits for the file and returns its bytes; empty if it is not fully sealed, or never arrives.
  SealedBytes takeSealed(std::uint64_t id);

  /// Waits for the file and maps it at the client's address. False if the file or the address is
  /// not allowed.
  bool map(std::uint64_t id, std::uint64_t address, std::uint64_t bytes);
  /// Waits for the file, and keeps `reserved` bytes at the client's address free of other mappings.
  /// Returns the file, which the caller owns and maps where it likes; -1 if the file or the address
  /// is not allowed. The mapping counts as claimed.
  int setAside(std::uint64_t id, std::uint64_t address, std::uint64_t bytes,
               std::uint64_t reserved);
  /// Maps a second time at an address that is set aside what is mapped at `pages`, for all calls
  /// to use.
  bool mapAside(std::uint64_t address, std::uint64_t bytes, std::byte* pages);
  /// Undoes mapAside().
  void unmapAside(std::uint64_t address, std::uint64_t reserved);
  /// Reserves the mapping for unmapping by the caller. False if there is none, or another thread
  /// has claimed it.
  bool claim(std::uint64_t address);
  /// Undoes claim().
  void keep(std::uint64_t address);
  /// Unmaps the memory. Returns its bytes; 0 if nothing was mapped.
  std::uint64_t unmap(std::uint64_t address);

  /// Records that the memory is registered with the context, until the context ends.
  void registered(std::uint64_t address, CUcontext context);
  void ended(CUcontext context);
  /// Whether the mapping has outlived its context, with which the registration ended.
  bool outlived(std::uint64_t address);

  /// Whole pages of the client's own memory outside of the window, backed by part of a file.
  struct Piece {
    std::uint64_t file;  ///< id
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t offset;
  };
  /// Waits for the file and maps the piece at the client's address. False if the file, the range
  /// or the address is not allowed, or the address is taken in this process.
  bool mapPiece(const Piece& piece);
  /// Makes pages of pieces a registration, claimed until keep(). False if pages are missing, or it
  /// overlaps another registration. It is read-only if the client says so, or if a page is.
  bool addRegistration(std::uint64_t address, std::uint64_t bytes, bool readOnly = false);
  /// Ends a registration, and unmaps the pieces that no other one needs. Returns their bytes.
  std::uint64_t dropRegistration(std::uint64_t address);
  /// Unmaps the pieces that no registration needs. Returns their bytes.
  std::uint64_t unmapUnused();

  /// Whether [address, address + bytes) is inside a mapping or a registration that is not claimed.
  bool contains(std::uint64_t address, std::uint64_t bytes) const;
  /// The same for memory that is also writable.
  bool containsWritable(std::uint64_t address, std::uint64_t bytes) const;

 private:
  struct Mapping {
    std::uint64_t bytes;
    bool writable = false;
    CUcontext context = nullptr;
    bool claimed = false;
    bool managed = false;  ///< never to be claimed: its bytes belong to the managed memory
  };

  struct Mapped {
    std::uint64_t bytes;
    bool writable;
  };

  bool fits(int file, std::uint64_t address, std::uint64_t bytes, std::uint64_t reserved) const;
  bool mapFile(const Piece& piece, int file);
  bool takeAddresses(std::uint64_t begin, std::uint64_t end);
  bool isMapped(std::uint64_t begin, std::uint64_t end) const;
  bool isCovered(std::uint64_t begin, std::uint64_t end) const;
  bool isUsed(std::uint64_t begin, std::uint64_t end) const;
  std::uint64_t unmapUnusedLocked();
  Mapping* find(std::uint64_t address);
  const Mapping* around(std::uint64_t address, std::uint64_t bytes) const;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  bool closed_ = false;
  std::map<std::uint64_t, int> files_;
  std::map<std::uint64_t, Mapping> mapped_;         ///< in the window, by start address
  std::map<std::uint64_t, Mapping> registrations_;  ///< outside of it
  std::map<std::uint64_t, Mapped> pieces_;          ///< that back them
  std::map<std::uint64_t, std::uint64_t> taken_;    ///< addresses of all pieces ever: begin, end
};

}  // namespace worker
