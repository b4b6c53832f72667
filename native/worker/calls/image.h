// A code image as it came from the client, made into what the driver takes.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda_abi.h"
#include "native/worker/image_facts.h"
#include "native/worker/shared_memory.h"
#include "wire/decoder.h"
#include "wire/encoder.h"

namespace worker {

class Thread;

/// Reads the memory file's id, the kind and the lengths; then points the driver to the bytes, through a wrapper where there was one.
class Image {
 public:
  /// False when the frame does not parse; pointer() is null when what it names is not there.
  bool decode(Thread& thread, wire::Decoder& in);
  const void* pointer() const { return pointer_; }
  /// Of all that it is made of.
  ImageFacts facts() const;

 private:
  struct Wrapper {
    std::uint32_t magic;
    std::uint32_t version;
    const void* data;
    const void* const* objects;
  };
  SealedBytes memory_;
  std::vector<std::span<const std::byte>> images_;  ///< the one to load, then those that it was linked from
  std::vector<const void*> objects_;
  Wrapper wrapper_{};
  const void* pointer_ = nullptr;
};

/// The options of a load. Log buffers are the worker's; what the driver wrote to them travels back.
class JitOptions {
 public:
  /// False when the frame does not parse.
  bool decode(wire::Decoder& in);
  /// False when one of the options is an address of the client, which means nothing here.
  bool supported() const { return supported_; }

  unsigned count() const { return static_cast<unsigned>(options_.size()); }
  CUjit_option* options() { return options_.data(); }
  void** values() { return values_.data(); }
  /// Information and errors, as far as the program asked for them.
  void encodeLogs(wire::Encoder& out) const;
  const char* errors() const { return errors_.data(); }

 private:
  void add(CUjit_option option, std::uint64_t value);
  void addLog(CUjit_option buffer, CUjit_option size, std::vector<char>& text);

  std::vector<CUjit_option> options_;
  std::vector<void*> values_;
  std::vector<char> information_ = std::vector<char>(16384);
  std::vector<char> errors_ = std::vector<char>(16384);
  std::uint64_t informationRoom_ = 0;
  std::uint64_t errorRoom_ = 0;
  bool supported_ = true;
};

}  // namespace worker
