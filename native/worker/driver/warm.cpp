#include "native/worker/driver/warm.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "native/worker/descriptors.h"
#include "native/worker/driver/cache.h"
#include "wire/received_files.h"

namespace worker {

namespace {

constexpr std::size_t kMaxArgumentBytes = 65536;
constexpr std::size_t kFiles = 4;

std::vector<wire::AddressRange> reserveWindows() {
  std::vector<wire::AddressRange> reserved;
  for (const wire::AddressRange& candidate : wire::windowCandidates()) {
    if (wire::reserve(candidate)) reserved.push_back(candidate);
  }
  return reserved;
}

/// Moves the files to their fixed descriptors. These are in use already, so no file of the packet
/// has such a number.
void takePlaces(const std::vector<int>& files) {
  constexpr std::array kPlaces = {kConnection, kReport, STDERR_FILENO, kControl};
  for (std::size_t i = 0; i < kFiles; ++i) {
    dup2(files[i], kPlaces[i]);
    close(files[i]);
  }
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    words.emplace_back(text.substr(0, text.find('\0')));
    text.remove_prefix(std::min(text.size(), words.back().size() + 1));
  }
  return words;
}

}  // namespace

WarmDriver::WarmDriver(const Options& startOptions)
    : options(startOptions), windows(reserveWindows()) {
  const std::string noCache = useCache({});
  environment =
      placed(driverEnvironment({}, options.gpus, noCache.empty(), options.mps), options.places);
  adopt(environment);
  start = startDriver(options.driver, driver);
  if (start.status != CUDA_SUCCESS) return;
  start.status = driver.cuDevicePrimaryCtxRetain(&context, 0);
  if (start.status != CUDA_SUCCESS)
    start.sentence = "the warm worker cannot create a context: " + nameOf(driver, start.status);
}

bool WarmDriver::suits(const Options& wanted, const Environment& environmentWanted,
                       const wire::AddressRange& window) const {
  const auto isWindow = [&](const wire::AddressRange& held) {
    return held.begin == window.begin && held.end == window.end;
  };
  return wanted.driver == options.driver && wanted.gpus == options.gpus &&
         equivalent(environmentWanted, environment) && std::ranges::any_of(windows, isWindow);
}

std::vector<std::string> awaitAssignment(std::string& sentence) {
  std::string text(kMaxArgumentBytes, '\0');
  std::vector<int> files;
  const wire::Received received =
      wire::receiveWithFiles(kConnection, text.data(), text.size(), files);
  if (received.bytes <= 0) return {};
  if (files.size() != kFiles || !received.whole) {
    for (const int file : files) close(file);
    sentence =
        "the warm worker was sent an assignment without its four files, or one that is too long";
    return {};
  }
  takePlaces(files);
  return split(std::string_view(text).substr(0, received.bytes));
}

}  // namespace worker
