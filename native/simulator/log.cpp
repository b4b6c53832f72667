#include "native/simulator/log.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "native/simulator/border.h"

namespace simulator {
namespace {

struct Callback {
  CUlogsCallback function;
  void* data;
};

struct Log {
  std::mutex mutex;
  std::map<const void*, std::unique_ptr<Callback>> callbacks;
};

Log& log() {
  static Log& instance = *new Log;
  return instance;
}

void append(const char* path, const std::string& line) {
  std::FILE* const file = std::string_view(path) == "stdout"   ? stdout
                          : std::string_view(path) == "stderr" ? stderr
                                                               : std::fopen(path, "ae");
  if (file == nullptr) return;
  std::fwrite(line.data(), 1, line.size(), file);
  if (file == stdout || file == stderr) {
    std::fflush(file);
  } else {
    std::fclose(file);
  }
}

}  // namespace

void logError(const std::string& sentence) {
  std::string line = "simulated GPU: " + sentence;
  const std::lock_guard lock(log().mutex);
  for (const auto& [handle, callback] : log().callbacks)
    callback->function(callback->data, CU_LOG_LEVEL_ERROR, line.data(), line.size());
  if (const char* path = std::getenv("CUDA_LOG_FILE"); path != nullptr && *path != 0)
    append(path, line + "\n");
}

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuLogsRegisterCallback(CUlogsCallback callbackFunc, void* userData,
                                   CUlogsCallbackHandle* callback_out) {
  return guarded([&]() -> CUresult {
    if (callbackFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto callback = std::make_unique<Callback>(Callback{callbackFunc, userData});
    const std::lock_guard lock(log().mutex);
    if (callback_out != nullptr)
      *callback_out = reinterpret_cast<CUlogsCallbackHandle>(callback.get());
    const void* key = callback.get();
    log().callbacks.emplace(key, std::move(callback));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
  return guarded([&]() -> CUresult {
    const std::lock_guard lock(log().mutex);
    return log().callbacks.erase(callback) == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}
