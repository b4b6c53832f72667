// Progress of an event that several processes use, in memory that they share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "native/simulator/exchange.h"

namespace simulator {

/// Records are numbered over all processes. Thread-safe.
class SharedEvent {
 public:
  /// Null if the process has no descriptors left.
  static std::shared_ptr<SharedEvent> create();
  /// The event of another process; null if it has ended.
  static std::shared_ptr<SharedEvent> open(const OfferedFile& name);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  /// Offers the event to other processes; always under the same name. Empty on failure.
  std::optional<OfferedFile> offer();

  /// Begins a record and returns its number.
  std::uint64_t record();
  /// The stream has reached the record.
  void finish(std::uint64_t number);
  /// The latest record; 0 if there is none.
  std::uint64_t latest() const;
  bool done(std::uint64_t number) const;
  /// Waits for the record, or for the death of the process that recorded last.
  void wait(std::uint64_t number) const;

 private:
  struct State;
  SharedEvent(int file, State* state) : file_(file), state_(state) {}
  static std::shared_ptr<SharedEvent> map(int file);

  int file_;
  State* const state_;
  std::mutex mutex_;
  std::optional<OfferedFile> offered_;
};

}  // namespace simulator
