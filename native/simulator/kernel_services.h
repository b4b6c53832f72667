// The driver's answers to kernels that launch kernels.
#pragma once

#include <memory>

#include "native/simulator/engine.h"

namespace simulator {

struct Context;
struct Function;

class KernelServices final : public DeviceRuntime {
 public:
  explicit KernelServices(Context& context) : context_(context) {}

  std::uint64_t allocate(std::uint64_t bytes) override;
  void release(std::uint64_t address) override;
  CUresult checkLaunch(const Launch& launch) override;
  bool setCondition(std::uint64_t handle, std::uint32_t value) override;
  std::optional<std::size_t> limit(int limit) override;
  std::optional<int> deviceAttribute(int attribute) override;
  int functionAttribute(const Program& program, std::size_t kernel, int attribute) override;
  int blocksPerMultiprocessor(const Program& program, std::size_t kernel, unsigned threads,
                              std::size_t dynamicShared) override;
  int cacheConfig() override;
  int device() override;
  int deviceCount() override;
  int version() override;

 private:
  /// Null if the program is not loaded in this context.
  std::shared_ptr<const Function> find(const Program& program, std::size_t kernel) const;

  Context& context_;
};

}  // namespace simulator
