// Cache of the driver's answers about one kernel. The key includes the kernel's attribute settings,
// because some libraries set an attribute before each launch, alternating between a few values.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cuda_abi.h"

namespace interposer {

/// An attribute that the program has set.
struct Setting {
  std::uint64_t kernel;  ///< or function
  CUfunction_attribute attribute;
  CUdevice device;
  int value;
};

/// A launch without its parameters. The grid's size is checked against the device's limits; the
/// driver must have accepted the rest once.
struct LaunchShape {
  std::array<unsigned, 3> block{};
  unsigned sharedBytes = 0;
  std::uint64_t attributes = 0;  ///< a digest of the launch attributes; 0: none
  std::uint64_t context = 0;
};

/// Thread-safe. A 64-bit digest identifies settings and launch shapes; collisions are ignored.
class KernelAnswers {
 public:
  /// Whether the attribute has this value already.
  bool isSet(const Setting& setting);
  /// Whether these settings, with this one added, existed before: then the driver accepts it again.
  bool wasSet(const Setting& setting);
  /// Records a setting that the driver has accepted, for this kernel or one that shares its
  /// attributes.
  void set(const Setting& setting);

  using Digest = std::uint64_t;

  /// Digest of a launch with the current settings.
  Digest digestOf(const LaunchShape& shape) const;
  /// Whether the driver has accepted such a launch before.
  bool accepted(Digest launch);
  void accept(Digest launch);

  /// A question whose answer depends on the settings alone: the call and its arguments.
  using Question = std::array<std::uint64_t, 5>;
  /// False if the answer is not cached for the current settings.
  bool find(const Question& question, int* number);
  void remember(const Question& question, int number);

  /// Clears the cache: code or a context has ended.
  void forget();

 private:
  std::vector<Setting> with(const Setting& setting) const;
  void forgetAnswers();

  std::atomic<Digest> settings_{0};      ///< of `set_`
  std::atomic<Digest> lastAccepted_{0};  ///< most launches repeat it; 0: none
  std::mutex mutex_;                     ///< of all below
  std::vector<Setting> set_;  ///< each once: by attribute and device, then by when it was set last
  std::unordered_set<Digest> settingsBefore_;
  std::unordered_set<Digest> launches_;
  std::map<std::pair<Digest, Question>, int> numbers_;
};

}  // namespace interposer
