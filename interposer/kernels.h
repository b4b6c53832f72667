// The kernels of this process (CUfunction and CUkernel alike): the layout of their parameters, and what the driver has answered about
// them once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "call_numbers.h"
#include "cuda_abi.h"
#include "interposer/loaded_code.h"
#include "wire/decoder.h"

namespace interposer {

struct KernelParameter {
  std::uint32_t offset;
  std::uint32_t size;
};

/// What a launch needs beside its parameters. The grid's size is checked against the device's limits; the rest must have been accepted
/// once.
struct LaunchShape {
  std::array<unsigned, 3> block{};
  unsigned sharedBytes = 0;
  std::uint64_t attributes = 0;  ///< a digest of the launch attributes; 0: none
  bool operator==(const LaunchShape&) const = default;

  /// Never 0. Two shapes with one digest would only mean that the driver's refusal of the second comes later than it might.
  std::uint64_t digest() const {
    constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15;
    std::uint64_t mixed = attributes;
    for (const unsigned word : {block[0], block[1], block[2], sharedBytes}) mixed = (mixed ^ word) * kPrime + (mixed >> 32);
    return mixed | 1;
  }
};

struct Kernel {
  std::uint64_t handle = 0;
  std::string name;

  /// The layout of the parameters, asked for again where the driver could not tell it at first.
  CUresult parameters(const std::vector<KernelParameter>*& layout);
  std::uint32_t parameterBytes() const { return parameterBytes_; }
  void setParameters(std::span<const KernelParameter> layout);
  std::atomic<CUresult> whyUnknown{CUDA_SUCCESS};  ///< what the driver answered instead of a layout

  /// Whether the driver has accepted a launch of this shape since the kernel's attributes last changed: then it need not be asked again.
  bool accepted(const LaunchShape& shape);
  void accept(const LaunchShape& shape);
  void forgetAnswers();

  std::mutex mutex;                                    ///< guards what follows
  std::map<std::pair<int, CUdevice>, int> attributes;  ///< (attribute, device) -> value
  std::map<std::pair<CUdevice, std::array<std::uint64_t, 3>>, int> occupancy;
  std::map<std::pair<int, CUdevice>, int> settings;  ///< attributes that the program set: setting the same again changes nothing
  std::map<CUcontext, CUfunction> functions;         ///< of a CUkernel: its function in each context
  std::array<LaunchShape, 8> shapes;                 ///< a ring of the last accepted
  unsigned shapeCount = 0;

 private:
  std::atomic<std::uint64_t> lastAccepted_{0};  ///< digest of the shape accepted last: most launches repeat it
  std::atomic<bool> known_{false};              ///< whether the layout is set; it never changes then
  std::vector<KernelParameter> parameters_;
  std::uint32_t parameterBytes_ = 0;
};

/// The kernel of a handle; null when it is none. The thread keeps the record until it has found some others, also when the kernel is
/// unloaded: then it is still found, and the driver refuses it.
Kernel* findKernel(std::uint64_t handle);
inline Kernel* findKernel(CUfunction function) { return findKernel(reinterpret_cast<std::uint64_t>(function)); }
inline Kernel* findKernel(CUkernel kernel) { return findKernel(reinterpret_cast<std::uint64_t>(kernel)); }

/// Reads a kernel as the worker describes it (native/worker/calls/kernel_description.h) and registers it. Null when it does not parse.
std::shared_ptr<Kernel> readKernel(wire::Decoder& reply, CodeOwners owners);

/// A module that is loaded, or a library's.
void addModule(CUmodule module, std::uint64_t library = 0);
/// A module, a library or a context has ended: forgets all kernels, and the addresses of all variables, that went with it.
void forgetCode(std::uint64_t ended);

/// Asks for the kernel of a library or function of a module by its name; on success `found` is its handle.
CUresult getKernel(CallNumber call, std::uint64_t owner, const char* name, std::uint64_t& found);

/// Asks for the first `count` kernels of a library or functions of a module, and hands each to `found`.
CUresult enumerateKernels(CallNumber call, std::uint64_t owner, unsigned count, const std::function<void(unsigned, const Kernel&)>& found);

/// Forgets what the driver said about kernels of this name: a kernel and its functions share their attributes.
void forgetAnswersOf(const std::string& name);
/// Forgets everything said about all kernels: the context that it was true of has ended.
void forgetKernelAttributes();

}  // namespace interposer
