#include "native/addon/memory_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "native/addon/failure.h"
#include "wire/anonymous_file.h"

namespace addon {

namespace {

/// A `file_handle` with room for its data.
union Handle {
  file_handle head;
  std::array<unsigned char, sizeof(file_handle) + MAX_HANDLE_SZ> bytes;
};

constexpr const char* kDigits = "0123456789abcdef";

std::string written(const Handle& handle) {
  std::string text;
  for (std::size_t at = 0; at < sizeof(file_handle) + handle.head.handle_bytes; ++at)
    text += {kDigits[handle.bytes[at] >> 4], kDigits[handle.bytes[at] & 15]};
  return text;
}

bool read(const std::string& text, Handle& handle) {
  const std::size_t bytes = text.size() / 2;
  if (text.size() % 2 != 0 || bytes < sizeof(file_handle) || bytes > handle.bytes.size() ||
      text.find_first_not_of(kDigits) != std::string::npos)
    return false;
  for (std::size_t at = 0; at < bytes; ++at)
    handle.bytes[at] = static_cast<unsigned char>(std::stoi(text.substr(2 * at, 2), nullptr, 16));
  return handle.head.handle_bytes == bytes - sizeof(file_handle);
}

}  // namespace

Napi::Value memoryFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 1 || !info[0].IsNumber())
    return refuse(Napi::TypeError::New(env, "memoryFile needs a number of bytes"));
  const int file =
      wire::createAnonymousFile("nvidia-virtual-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file >= 0 && ftruncate(file, info[0].As<Napi::Number>().Int64Value()) == 0 &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return Napi::Number::New(env, file);
  const int error = errno;
  close(file);
  return refuseErrno(env, "memoryFile", error);
}

Napi::Value memoryFileHandle(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 1 || !info[0].IsNumber())
    return refuse(Napi::TypeError::New(env, "memoryFileHandle needs a file descriptor"));
  Handle handle{};
  handle.head.handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (name_to_handle_at(info[0].As<Napi::Number>().Int32Value(), "", &handle.head, &mount,
                        AT_EMPTY_PATH) != 0)
    return refuseErrno(env, "memoryFileHandle");
  return Napi::String::New(env, written(handle));
}

Napi::Value findMemoryFile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Handle handle{};
  if (info.Length() != 1 || !info[0].IsString() || !read(info[0].As<Napi::String>(), handle))
    return refuse(Napi::TypeError::New(env, "findMemoryFile needs a handle of a memory file"));
  // All memory files are in one file system, which any of them names.
  const int place = wire::createAnonymousFile("nvidia-virtual-place", MFD_CLOEXEC);
  if (place < 0) return refuseErrno(env, "findMemoryFile");
  const int file = open_by_handle_at(place, &handle.head, O_PATH | O_CLOEXEC);
  const int error = errno;
  close(place);
  if (file >= 0) return Napi::Number::New(env, file);
  return error == ESTALE ? env.Undefined() : refuseErrno(env, "findMemoryFile", error);
}

}  // namespace addon
