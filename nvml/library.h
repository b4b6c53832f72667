// The state of libnvidia-ml.so.1 in this process: how often it was initialised, the latest page,
// and the handles of devices.
#pragma once

#include <mutex>

#include "nvml/page.h"

#define NVML_EXPORT extern "C" __attribute__((visibility("default")))

namespace nvml {

class Library {
 public:
  static Library& instance();

  /// kDriverNotLoaded if no gpu-proxy publishes GPUs for this process.
  Return start();
  Return stop();
  Return initialized();

  /// Runs body(const Page&) and returns its status; kUninitialized before nvmlInit.
  template <class Body>
  Return onPage(Body&& body) {
    const std::lock_guard lock(mutex_);
    if (starts_ == 0) return kUninitialized;
    refresh();
    return body(page_);
  }

  /// Runs body(const Gpu&, unsigned index) on the GPU of a handle. kUnknown if gpu-proxy has not
  /// read the GPUs for minutes: old values would look like those of an idle or a hung GPU.
  template <class Body>
  Return onDevice(Device device, Body&& body) {
    return onPage([&](const Page& page) -> Return {
      const std::size_t index = static_cast<const char*>(device) - handles_;
      if (index >= page.gpus.size() || index >= sizeof handles_) return kInvalidArgument;
      if (isStale(page)) return kUnknown;
      return body(page.gpus[index], static_cast<unsigned>(index));
    });
  }

  Device handleOf(std::size_t index) { return handles_ + index; }

 private:
  Library();
  void refresh();
  static bool isStale(const Page& page);

  std::mutex mutex_;
  unsigned starts_ = 0;
  Page page_;
  long long readAt_ = 0;  ///< milliseconds of the monotonic clock
  char handles_[64] = {};
};

/// Writes a text with its terminating zero.
Return writeText(std::string_view text, char* out, unsigned length);

/// Writes an answer's bytes to the results of a call, one after the other. kNotSupported if the GPU
/// has no such answer.
Return writeAnswer(const Answers& answers, const std::string& name,
                   std::initializer_list<std::pair<void*, std::size_t>> results);

/// Number at the begin of an answer; 0 if there is none.
unsigned numberOf(const Answers& answers, const std::string& name);

/// Whether a struct of the caller has the one known version.
template <class Struct>
Return checkVersion(const Struct* result) {
  if (result == nullptr) return kInvalidArgument;
  return result->version == versionOf<Struct>() ? kSuccess : kArgumentVersionMismatch;
}

template <class Body>
Return onDevice(Device device, Body&& body) {
  return Library::instance().onDevice(device, body);
}

template <class Body>
Return onPage(Body&& body) {
  return Library::instance().onPage(body);
}

}  // namespace nvml
