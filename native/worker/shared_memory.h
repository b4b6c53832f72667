// Memory files that the client sent: some hold a call's long argument, others become pinned memory at the client's address.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "cuda_abi.h"
#include "wire/address_window.h"

namespace worker {

/// The content of a memory file that nobody can change any more; unmapped with this object.
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
  /// Where the client's pinned memory may lie.
  wire::AddressRange window;

  /// A file has arrived on the socket. Owned from here on.
  void put(std::uint64_t id, int file);
  /// Nothing more will arrive.
  void close();

  /// The file's bytes, once it has arrived; empty when it is not sealed against every change or never comes.
  SealedBytes takeSealed(std::uint64_t id);

  /// Maps the file at the client's address; false when the file or the address is not what the client may ask for.
  bool map(std::uint64_t id, std::uint64_t address, std::uint64_t bytes);
  /// How many bytes were mapped there; 0 when nothing was.
  std::uint64_t unmap(std::uint64_t address);

  /// What is mapped there is registered with the context, and stays so until that ends.
  void registered(std::uint64_t address, CUcontext context);
  void ended(CUcontext context);
  /// Its context has ended, and the registration with it.
  bool outlived(std::uint64_t address) const;

  /// True when [address, address + bytes) lies inside memory mapped by map().
  bool contains(std::uint64_t address, std::uint64_t bytes) const;

 private:
  struct Mapping {
    std::uint64_t bytes;
    CUcontext context = nullptr;
  };

  int take(std::uint64_t id);

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  bool closed_ = false;
  std::map<std::uint64_t, int> files_;
  std::map<std::uint64_t, Mapping> mapped_;  ///< by where they begin
};

}  // namespace worker
