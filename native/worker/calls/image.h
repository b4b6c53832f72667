// A code image from the client, in the form that the driver takes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda_abi.h"
#include "native/worker/images/vetted_image.h"
#include "wire/decoder.h"
#include "wire/encoder.h"

namespace worker {

class Thread;

/// Code image of some parts, in a frame or in the memory file that the frame names.
class Image {
 public:
  /// False when the frame does not parse.
  bool decode(Thread& thread, wire::Decoder& in);
  /// Null if the memory file does not match the lengths in the frame.
  const VettedImage* vetted() const { return vetted_.get(); }

 private:
  /// The parts lie in the thread's copy of the frame, which the client cannot write.
  bool decodeInline(wire::Decoder& in, std::span<const std::uint64_t> lengths);

  std::unique_ptr<VettedImage> vetted_;
};

/// JIT options of a load, with the log buffers, whose content is sent back.
class JitOptions {
 public:
  /// Whether the driver is asked for its logs. An input of a link has none of its own.
  enum class Logs : bool { none, both };

  JitOptions() { information_[0] = errors_[0] = '\0'; }
  JitOptions(const JitOptions&) = delete;

  /// False when the frame does not parse.
  bool decode(wire::Decoder& in, Logs logs = Logs::both);
  /// False if an option's value is an address of the client, which is invalid in the worker.
  bool supported() const { return supported_; }

  unsigned count() const { return static_cast<unsigned>(options_.size()); }
  CUjit_option* options() { return options_.data(); }
  void** values() { return values_.data(); }
  /// Writes the information and error logs, cut to the sizes that the program asked for, and the
  /// numbers that the driver set: the wall time and the threads of a block.
  void encodeLogs(wire::Encoder& out) const;
  const char* errors() const { return errors_; }
  /// Replaces the error log by a message of the worker.
  void setErrors(const std::string& sentence);

 private:
  std::uint64_t numberOf(CUjit_option option) const;
  void add(CUjit_option option, std::uint64_t value);
  static constexpr std::size_t kLogBytes = 16384;
  void addLog(CUjit_option buffer, CUjit_option size, char* text);

  std::vector<CUjit_option> options_;
  std::vector<void*> values_;
  // Only their first byte is cleared. To allocate them would take 2 us, 4 % of a small image
  // (H200).
  char information_[kLogBytes];
  char errors_[kLogBytes];
  std::uint64_t informationRoom_ = 0;
  std::uint64_t errorRoom_ = 0;
  bool supported_ = true;
};

}  // namespace worker
