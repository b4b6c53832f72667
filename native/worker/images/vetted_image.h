// A code image from the client, validated for the driver. The driver gets a bare pointer without a
// length, so it only sees what was parsed completely: no length, offset or pointer leads outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuda_abi.h"

namespace worker {

/// Facts about an image before it is loaded. For the entries of a fat binary, which are
/// alternatives, the maximum.
struct ImageFacts {
  std::uint64_t memory = 0;  ///< bytes of device memory: code of machine code, constants, variables
  bool mayPrint = false;     ///< it names the device's printf
  bool mayAllocate = false;  ///< it names the device's malloc
};

/// The kind of each part is decided by its content: PTX text, machine code (ELF) or a fat binary. A
/// wrapper, which holds pointers, is refused. A linked program gets one made here; nothing else
/// does, because modules refuse wrappers (H200, driver 580).
class VettedImage {
 public:
  /// What lies behind each part. If wire::kImageZeros do, machine code is not copied, and must
  /// outlive this object.
  enum class Behind : bool { unknown, zeros };
  /// `parts`: the image to load; behind it, for a program linked from relocatable device code, the
  /// fat binaries that it was linked from. Nobody may write to them.
  explicit VettedImage(std::span<const std::span<const std::byte>> parts,
                       Behind behind = Behind::unknown);
  VettedImage(const VettedImage&) = delete;
  VettedImage& operator=(const VettedImage&) = delete;

  /// Why the driver must not see it; CUDA_SUCCESS when it may.
  CUresult status() const { return status_; }
  /// The same for the log. Not empty either when only a part of the image is kept from the driver.
  const std::string& sentence() const { return sentence_; }
  /// For the driver, while this object lives.
  const void* pointer() const { return pointer_; }
  /// What cuLinkAddData takes: the image itself, a text with its terminator.
  std::span<const std::byte> content() const { return content_; }
  const ImageFacts& facts() const { return facts_; }

 private:
  using Bytes = std::vector<std::byte>;
  struct Wrapper {
    std::uint32_t magic;
    std::uint32_t version;
    const void* data;
    const void* const* objects;  ///< ended by null
  };

  void vet(std::span<const std::span<const std::byte>> parts);
  void addLinked(std::span<const std::span<const std::byte>> parts);
  void addText(std::span<const std::byte> part);
  std::span<const std::byte> addCopy(std::span<const std::byte> part);
  void addCubin(std::span<const std::byte> part);
  void addContained(std::span<const std::byte> part);
  ImageFacts addFatbin(std::span<const std::byte> part);
  void addEntry(std::span<const std::byte> header, std::span<const std::byte> payload, Bytes& copy,
                ImageFacts& facts);
  void wrap();

  const Behind behind_;
  std::vector<Bytes> copies_;
  std::vector<const void*> objects_;
  Wrapper wrapper_{};
  const void* pointer_ = nullptr;
  std::span<const std::byte> content_;
  ImageFacts facts_;
  std::uint64_t unpacked_ = 0;  ///< bytes that were decompressed
  CUresult status_ = CUDA_SUCCESS;
  std::string sentence_;
};

}  // namespace worker
