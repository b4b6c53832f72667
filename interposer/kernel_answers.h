// What the driver has said about one kernel. It holds as long as the kernel's attributes are set as they were then, and again whenever they
// are: some libraries set an attribute before each launch, to one of a few values in turns.
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

/// What a launch needs beside its parameters. The grid's size is checked against the device's limits; the rest must have been accepted
/// once.
struct LaunchShape {
  std::array<unsigned, 3> block{};
  unsigned sharedBytes = 0;
  std::uint64_t attributes = 0;  ///< a digest of the launch attributes; 0: none
  std::uint64_t context = 0;
};

/// Thread-safe. What is told apart by digests of 64 bits is taken to be different when they are.
class KernelAnswers {
 public:
  /// Whether it is set so already.
  bool isSet(const Setting& setting);
  /// Whether all was set once as it would be with this: then the driver takes it again.
  bool wasSet(const Setting& setting);
  /// The driver has taken it, for this kernel or one that shares its attributes.
  void set(const Setting& setting);

  using Digest = std::uint64_t;

  /// Of a launch, as everything is set now.
  Digest digestOf(const LaunchShape& shape) const;
  /// Whether the driver has accepted such a launch: then it need not be asked again.
  bool accepted(Digest launch);
  void accept(Digest launch);

  /// Something that depends on the settings alone: the call, and what else was asked.
  using Question = std::array<std::uint64_t, 5>;
  /// False when it is not known, as everything is set now.
  bool find(const Question& question, int* number);
  void remember(const Question& question, int number);

  /// Code or a context has ended, and what was true of the kernel with it.
  void forget();

 private:
  std::vector<Setting> with(const Setting& setting) const;
  void forgetAnswers();

  std::atomic<Digest> settings_{0};      ///< of `set_`
  std::atomic<Digest> lastAccepted_{0};  ///< most launches repeat it; 0: none
  std::mutex mutex_;                     ///< of all below
  std::vector<Setting> set_;             ///< each once: by attribute and device, then by when it was set last
  std::unordered_set<Digest> settingsBefore_;
  std::unordered_set<Digest> launches_;
  std::map<std::pair<Digest, Question>, int> numbers_;
};

}  // namespace interposer
