// What the tests of the engine share: device memory and a launcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "native/simulator/engine.h"

namespace test {

class Memory final : public simulator::AddressSpace {
 public:
  bool contains(std::uint64_t address, std::uint64_t bytes) const override {
    const auto [begin, end] = around(address);
    return begin != end && address + bytes <= end;
  }
  bool containsWritable(std::uint64_t address, std::uint64_t bytes) const override {
    return contains(address, bytes);
  }
  std::array<std::uint64_t, 2> around(std::uint64_t address) const override {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return {0, 0};
    const auto& [begin, storage] = *--after;
    return address < begin + storage.bytes ? std::array{begin, begin + storage.bytes}
                                           : std::array<std::uint64_t, 2>{0, 0};
  }
  std::uint64_t allocate(std::uint64_t bytes) {
    Storage storage{std::make_unique<std::max_align_t[]>(bytes / sizeof(std::max_align_t) + 17),
                    bytes};
    auto address = reinterpret_cast<std::uint64_t>(storage.words.get());
    address = (address + 255) & ~std::uint64_t{255};
    const std::lock_guard lock(mutex_);
    blocks_[address] = std::move(storage);
    return address;
  }
  void release(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    blocks_.erase(address);
  }

 private:
  struct Storage {
    std::unique_ptr<std::max_align_t[]> words;
    std::uint64_t bytes;
  };
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Storage> blocks_;
};

template <class T>
class Buffer {
 public:
  Buffer(Memory& memory, std::size_t count)
      : memory_(memory), address_(memory.allocate(count * sizeof(T))), count_(count) {
    std::memset(data(), 0, count * sizeof(T));
  }
  Buffer(Memory& memory, const std::vector<T>& values) : Buffer(memory, values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { memory_.release(address_); }
  T* data() { return reinterpret_cast<T*>(address_); }
  T& operator[](std::size_t i) { return data()[i]; }
  std::uint64_t address() const { return address_; }
  std::size_t size() const { return count_; }

 private:
  Memory& memory_;
  std::uint64_t address_;
  std::size_t count_;
};

struct Shape {
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::uint32_t dynamicShared = 0;
  bool cooperative = false;
};

/// A compiled program in a memory of its own.
class Module {
 public:
  explicit Module(std::vector<std::string> texts) {
    std::vector<std::string_view> views(texts.begin(), texts.end());
    program = simulator::compile(views, error);
    if (!program) return;
    for (std::size_t i = 0; i < program->variables().size(); ++i) {
      addresses.push_back(memory.allocate(program->variables()[i].size));
      program->bind(i, addresses.back());
    }
    program->initialise();
  }
  explicit Module(const std::string& text) : Module(std::vector<std::string>{text}) {}

  template <class... Arguments>
  CUresult run(const std::string& kernel, const Shape& shape, Arguments... arguments) {
    if (!program) {
      std::fprintf(stderr, "%s\n", error.sentence.c_str());
      return error.result;
    }
    std::size_t index = 0;
    while (index < program->kernels().size() && program->kernels()[index].name != kernel) ++index;
    if (index == program->kernels().size()) return CUDA_ERROR_NOT_FOUND;
    const simulator::KernelInfo& info = program->kernels()[index];
    std::vector<std::byte> parameters(info.parameterBytes);
    std::size_t n = 0;
    (void)n;
    ((std::memcpy(parameters.data() + info.parameters.at(n).offset, &arguments,
                  info.parameters.at(n).size),
      ++n),
     ...);
    simulator::Launch launch{program.get(),     index,         shape.grid,
                             shape.block,       shape.cluster, shape.dynamicShared,
                             shape.cooperative, parameters};
    simulator::Environment environment;
    environment.memory = &memory;
    environment.images = &images;
    environment.output.text = [this](std::string_view text) { printed += text; };
    environment.output.assertion = [this](std::string_view text) { asserted += text; };
    environment.deviceMalloc = [this](std::uint64_t bytes) { return memory.allocate(bytes); };
    environment.deviceFree = [this](std::uint64_t address) { memory.release(address); };
    environment.runtime = runtime;
    return simulator::execute(launch, environment);
  }

  std::uint64_t variable(const std::string& name) const {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (program->variables()[i].name == name) return addresses[i];
    }
    return 0;
  }

  Memory memory;
  simulator::Images images;
  simulator::CompileError error;
  std::unique_ptr<simulator::Program> program;
  std::vector<std::uint64_t> addresses;
  std::string printed, asserted;
  simulator::DeviceRuntime* runtime = nullptr;
};

}  // namespace test
