#include "interposer/code/load.h"

#include <cstdio>
#include <vector>

#include "interposer/code/image.h"
#include "interposer/session/log.h"
#include "interposer/session/memory_file.h"

namespace interposer {

CUresult load(CallNumber number, const void* code, JitOptions options, std::uint64_t& handle) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (!options.valid() || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto images = imagesOf(code);
  if (images.empty()) return CUDA_ERROR_INVALID_IMAGE;
  const SentMemory memory = sendBytes(*Session::current(), images);
  if (memory.id == 0) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  Call call;
  if (!call.begin(number, 64 + images.size() * 8 + options.payloadBytes(), kOrdered))
    return call.status();
  call.encoder().put(memory.id);
  call.encoder().put<std::uint64_t>(images.size());
  for (const auto& image : images) call.encoder().put<std::uint64_t>(image.size());
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
