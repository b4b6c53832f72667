// Files that a process offers to others which know their keys. Files of memory and of drivers
// cannot be opened by name, so they travel over a Unix socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace wire {

/// Random, so that it cannot be guessed.
using FileKey = std::array<std::byte, 16>;

/// False if the system has no random numbers.
bool makeFileKey(FileKey& key);

/// Thread-safe. Offers end with the process. Never destroyed after open(), because a thread of its
/// own answers.
class FileOffers {
 public:
  /// `address`: path of a socket, or '@' and the name of an abstract one.
  explicit FileOffers(std::string address) : address_(std::move(address)) {}
  FileOffers(const FileOffers&) = delete;
  FileOffers& operator=(const FileOffers&) = delete;

  const std::string& address() const { return address_; }
  /// Offers the file, which the offer owns from now on. The first call creates the socket. Returns
  /// false, and closes the file, if there can be no socket.
  bool offer(const FileKey& key, int file);
  /// Ends an offer. Does nothing if there is none.
  void withdraw(const FileKey& key);

 private:
  bool open();
  void answer(int socket);
  void answerOne(int connection);

  const std::string address_;
  std::mutex mutex_;
  bool opened_ = false;
  std::map<FileKey, int> files_;
};

/// Fetches an offered file from a process of the same user. Returns its descriptor, or -1: the
/// process is gone, or does not offer it.
int fetchFile(const std::string& address, const FileKey& key);

}  // namespace wire
