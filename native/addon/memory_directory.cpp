#include "native/addon/memory_directory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "native/addon/failure.h"

namespace addon {

namespace {

// The C library has these calls only since 2.36. The numbers are the same on all architectures.
constexpr long kFsopen = 430, kFsconfig = 431, kFsmount = 432;
constexpr unsigned kCloseOnExec = 1;
constexpr unsigned kSetString = 1, kCreate = 6;
constexpr unsigned kNoSuid = 2, kNoDevices = 4, kNoPrograms = 8;

bool set(int context, const char* key, const char* value) {
  return syscall(kFsconfig, context, kSetString, key, value, 0) == 0;
}

int mountTmpfs(std::int64_t bytes) {
  const int context = static_cast<int>(syscall(kFsopen, "tmpfs", kCloseOnExec));
  if (context < 0) return -1;
  const bool made = set(context, "size", std::to_string(bytes).c_str()) &&
                    set(context, "mode", "700") &&
                    syscall(kFsconfig, context, kCreate, nullptr, nullptr, 0) == 0;
  const int directory = made ? static_cast<int>(syscall(kFsmount, context, kCloseOnExec,
                                                        kNoSuid | kNoDevices | kNoPrograms))
                             : -1;
  const int error = errno;
  close(context);
  errno = error;
  return directory;
}

}  // namespace

Napi::Value memoryDirectory(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info.Length() != 1 || !info[0].IsNumber())
    return refuse(Napi::TypeError::New(env, "memoryDirectory needs a number of bytes"));
  const int directory = mountTmpfs(info[0].As<Napi::Number>().Int64Value());
  return directory < 0 ? refuseErrno(env, "memoryDirectory") : Napi::Number::New(env, directory);
}

}  // namespace addon
