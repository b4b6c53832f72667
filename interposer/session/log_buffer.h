// The latest messages of the log, for the cuLogs functions.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "cuda_abi.h"

namespace interposer {

/// Thread-safe. Messages are numbered; an iterator is the number of the next message to read.
class LogBuffer {
 public:
  /// Bytes that are kept, with a newline behind each message. The driver keeps as many.
  static constexpr std::size_t kBytes = 25'600;

  /// Never destroyed, because threads may log while the process exits.
  static LogBuffer& instance();

  /// Keeps the message, and calls the program's callbacks on this thread.
  void add(const std::string& message, CUlogLevel level);

  CUlogsCallbackHandle addCallback(CUlogsCallback function, void* data);
  bool removeCallback(CUlogsCallbackHandle handle);

  /// The number of the next message.
  std::uint32_t end() const;
  /// The messages from `begin` on, each with a newline. Sets `begin` to end().
  std::string textFrom(std::uint32_t& begin) const;
  /// The same, but the latest messages only, in at most `most` bytes. Empty if not even the latest
  /// fits.
  std::string latestFrom(std::uint32_t& begin, std::size_t most) const;

 private:
  struct Callback {
    CUlogsCallback function;
    void* data;
  };

  std::uint32_t end_() const { return first_ + static_cast<std::uint32_t>(messages_.size()); }
  std::size_t indexOf(std::uint32_t number) const;

  mutable std::mutex mutex_;
  std::deque<std::string> messages_;
  std::size_t bytes_ = 0;
  std::uint32_t first_ = 0;  ///< the number of the oldest message that is kept
  std::uintptr_t lastCallback_ = 0;
  std::map<std::uintptr_t, Callback> callbacks_;
};

}  // namespace interposer
