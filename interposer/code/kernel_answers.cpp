#include "interposer/code/kernel_answers.h"

#include <algorithm>

namespace interposer {

namespace {

/// Limit for one kernel. Beyond it the cache is cleared.
constexpr std::size_t kMostSettings = 64, kMostLaunches = 1024, kMostNumbers = 4096;

/// Never 0.
template <class... Words>
std::uint64_t digestWith(std::uint64_t digest, Words... words) {
  ((digest = (digest ^ static_cast<std::uint64_t>(words)) * 0x9e3779b97f4a7c15 + (digest >> 32)),
   ...);
  return digest | 1;
}

std::uint64_t digestOfAll(const std::vector<Setting>& settings) {
  std::uint64_t digest = 0;
  for (const Setting& each : settings)
    digest = digestWith(digest, each.kernel, each.attribute, each.device, each.value);
  return digest;
}

}  // namespace

std::vector<Setting> KernelAnswers::with(const Setting& setting) const {
  std::vector<Setting> all = set_;
  std::erase_if(all, [&](const Setting& each) {
    return each.kernel == setting.kernel && each.attribute == setting.attribute &&
           each.device == setting.device;
  });
  all.push_back(setting);
  std::stable_sort(all.begin(), all.end(), [](const Setting& one, const Setting& other) {
    return std::pair(one.attribute, one.device) < std::pair(other.attribute, other.device);
  });
  return all;
}

bool KernelAnswers::isSet(const Setting& setting) {
  const std::lock_guard lock(mutex_);
  const auto last = std::find_if(set_.rbegin(), set_.rend(), [&](const Setting& each) {
    return each.attribute == setting.attribute && each.device == setting.device;
  });
  return last != set_.rend() && last->kernel == setting.kernel && last->value == setting.value;
}

bool KernelAnswers::wasSet(const Setting& setting) {
  const std::lock_guard lock(mutex_);
  return settingsBefore_.contains(digestOfAll(with(setting)));
}

void KernelAnswers::set(const Setting& setting) {
  const std::lock_guard lock(mutex_);
  set_ = with(setting);
  // Many kernels have one name: forget the settings of the others, and all answers.
  if (set_.size() > kMostSettings) {
    set_ = {setting};
    forgetAnswers();
  }
  const Digest settings = digestOfAll(set_);
  if (settingsBefore_.size() >= kMostSettings && !settingsBefore_.contains(settings))
    forgetAnswers();
  settingsBefore_.insert(settings);
  settings_.store(settings, std::memory_order_release);
}

KernelAnswers::Digest KernelAnswers::digestOf(const LaunchShape& shape) const {
  const Digest settings = settings_.load(std::memory_order_acquire);
  return digestWith(shape.attributes, shape.block[0], shape.block[1], shape.block[2],
                    shape.sharedBytes, shape.context, settings);
}

bool KernelAnswers::accepted(Digest launch) {
  if (lastAccepted_.load(std::memory_order_acquire) == launch) [[likely]]
    return true;
  const std::lock_guard lock(mutex_);
  if (!launches_.contains(launch)) return false;
  lastAccepted_.store(launch, std::memory_order_release);
  return true;
}

void KernelAnswers::accept(Digest launch) {
  const std::lock_guard lock(mutex_);
  if (launches_.size() >= kMostLaunches) launches_.clear();
  launches_.insert(launch);
  lastAccepted_.store(launch, std::memory_order_release);
}

bool KernelAnswers::find(const Question& question, int* number) {
  const std::lock_guard lock(mutex_);
  const auto known = numbers_.find({settings_, question});
  if (known == numbers_.end()) return false;
  *number = known->second;
  return true;
}

void KernelAnswers::remember(const Question& question, int number) {
  const std::lock_guard lock(mutex_);
  if (numbers_.size() >= kMostNumbers) numbers_.clear();
  numbers_[{settings_, question}] = number;
}

void KernelAnswers::forgetAnswers() {
  lastAccepted_.store(0, std::memory_order_release);
  settingsBefore_.clear();
  launches_.clear();
  numbers_.clear();
}

void KernelAnswers::forget() {
  const std::lock_guard lock(mutex_);
  forgetAnswers();
  set_.clear();
  settings_.store(0, std::memory_order_release);
}

}  // namespace interposer
