#include "interposer/code/load.h"

#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "interposer/code/image.h"
#include "interposer/session/log.h"
#include "interposer/session/memory_file.h"
#include "wire/image.h"

namespace interposer {

namespace {

using Images = std::span<const std::span<const std::byte>>;

/// Bytes that the images take in a frame; 0 if they do not fit and travel in a memory file.
std::size_t inlineBytes(Images images) {
  std::size_t bytes = 0;
  for (const auto& image : images) {
    if (image.size() > wire::kInlineImageBytes) return 0;
    bytes += sizeof(std::uint64_t) + wire::Encoder::padded(image.size() + wire::kImageZeros);
  }
  return bytes <= wire::kInlineImageBytes ? bytes : 0;
}

void putInline(wire::Encoder& encoder, Images images) {
  for (const auto& image : images) {
    std::byte* to = encoder.space(image.size() + wire::kImageZeros);
    if (to == nullptr) return;
    std::memcpy(to, image.data(), image.size());
    std::memset(to + image.size(), 0, wire::kImageZeros);
  }
}

}  // namespace

CUresult load(CallNumber number, const void* code, JitOptions options, std::uint64_t& handle) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (!options.valid() || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto images = imagesOf(code);
  if (images.empty()) return CUDA_ERROR_INVALID_IMAGE;
  const std::size_t bytes = inlineBytes(images);
  SentMemory memory;
  if (bytes == 0 && (memory = sendBytes(*Session::current(), images)).id == 0)
    return CUDA_ERROR_DEVICE_UNAVAILABLE;
  Call call;
  if (!call.begin(number, 64 + (bytes > 0 ? bytes : images.size() * 8) + options.payloadBytes(),
                  kOrdered))
    return call.status();
  call.encoder().put(memory.id);
  call.encoder().put<std::uint64_t>(images.size());
  for (const auto& image : images) call.encoder().put<std::uint64_t>(image.size());
  if (bytes > 0) putInline(call.encoder(), images);
  options.encode(call.encoder());
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  handle = reply.get<std::uint64_t>();
  options.decode(reply);
  return status;
}

CUresult readFile(const char* path, std::string& content) {
  FILE* file = std::fopen(path, "rbe");
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  char chunk[65536];
  for (std::size_t bytes; (bytes = std::fread(chunk, 1, sizeof chunk, file)) > 0;)
    content.append(chunk, bytes);
  std::fclose(file);
  return CUDA_SUCCESS;
}

}  // namespace interposer
