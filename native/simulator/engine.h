// Interface between the simulated driver (contexts, streams, memory, modules) and the engine that
// runs PTX on the CPU. The driver does not know PTX; the engine knows only result codes of the CUDA
// API.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/image.h"

namespace simulator {

/// The memory that kernels may access: device memory and shared host memory. Implemented by the
/// driver (memory.h). Thread-safe. Device addresses are addresses of this process, so a checked
/// access is an ordinary load or store.
class AddressSpace {
 public:
  virtual ~AddressSpace() = default;
  /// Whether [address, address + bytes) is inside one live allocation.
  virtual bool contains(std::uint64_t address, std::uint64_t bytes) const = 0;
  /// The same for an allocation that kernels may also write.
  virtual bool containsWritable(std::uint64_t address, std::uint64_t bytes) const = 0;
  /// The live writable allocation that contains `address`, as [begin, end); {0, 0} if there is
  /// none. The engine caches the result during a launch, until MemoryUser::revoked() is true.
  virtual std::array<std::uint64_t, 2> around(std::uint64_t address) const = 0;
  /// Describes what is next to an address outside of all live allocations: "4 bytes behind the 256
  /// bytes at 0x7f00". May be empty.
  virtual std::string describe(std::uint64_t) const { return {}; }
};

/// Whether NVIDIA_VIRTUAL_SIMULATOR_CHECK names a check: then memory ends at its last byte.
bool hasChecks();

struct ParameterInfo {
  std::uint32_t offset;
  std::uint32_t size;
};

struct KernelInfo {
  std::string name;
  std::vector<ParameterInfo> parameters;
  std::uint32_t parameterBytes = 0;
  std::uint32_t staticSharedBytes = 0;
  std::uint32_t localBytes = 0;  ///< of one thread, without what no compiler can bound
  std::uint32_t stackBytes = 0;  ///< the same with room for recursion and calls through pointers
  std::uint32_t constantBytes = 0;
  std::uint32_t registers = 0;              ///< estimate from live ranges, before the bounds below
  std::uint32_t maxRegisters = 0;           ///< .maxnreg; 0: none
  std::uint32_t maxThreadsPerBlock = 1024;  ///< lowered by .maxntid
  bool threadsBounded = false;              ///< by .maxntid or .reqntid
  std::uint32_t minBlocksPerMultiprocessor = 0;
  std::array<std::uint32_t, 3> requiredClusterDim{};
};

/// A module-scope variable. The driver gives it device memory, then calls Program::bind.
struct VariableInfo {
  std::string name;
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;
  bool constant = false;  ///< .const
  bool opaque = false;    ///< .texref, .surfref: 8 bytes that hold the handle of an object
  bool managed = false;   ///< .attribute(.managed)
};

/// Why a text did not compile. The message names the line and the instruction, like the JIT's error
/// log.
struct CompileError {
  CUresult result = CUDA_SUCCESS;  ///< CUDA_ERROR_INVALID_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                                   ///< CUDA_ERROR_INVALID_SOURCE…
  std::string sentence;
};

/// One or more linked PTX modules, decoded once and shared by all launches.
class Program {
 public:
  virtual ~Program() = default;
  virtual std::span<const KernelInfo> kernels() const = 0;
  virtual std::span<const VariableInfo> variables() const = 0;
  /// Places variable `index` at `address` and writes its initial value. It may contain addresses of
  /// other variables and functions, so bind all variables before initialise().
  virtual void bind(std::size_t index, std::uint64_t address) = 0;
  virtual void initialise() = 0;
  /// Whether its kernels may launch kernels.
  virtual bool launchesKernels() const = 0;
  /// Writes the initial value of one variable, which initialise() of all programs then keeps if
  /// they bind it by bindInitialised().
  virtual void initialise(std::size_t index) = 0;
  virtual void bindInitialised(std::size_t index, std::uint64_t address) = 0;
};

/// What becomes of a variable that is `.extern` and has a size, if no text defines it. The compiler
/// of whole programs ignores `.extern` and warns, and the linker refuses the variable (ptxas and
/// nvlink 13.0).
enum class Externs : std::uint8_t { define, refuse };

/// Compiles and links the texts (one for an ordinary image; one per object file for -rdc=true).
/// Several texts are no whole program.
std::unique_ptr<Program> compile(std::span<const std::string_view> texts, CompileError& error,
                                 Externs externs = Externs::define);

/// Why a text cannot be linked; CUDA_SUCCESS if it can, up to names that it does not define.
/// @param defined receives the names that no other text may define
CompileError checkText(std::string_view text, std::vector<std::string>& defined);
/// Result of an H200 for a name that several texts define.
CompileError definedAgain(std::string_view name);

struct Launch {
  const Program* program = nullptr;
  std::size_t kernel = 0;  ///< index into program->kernels()
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
  std::uint32_t dynamicSharedBytes = 0;
  bool cooperative = false;
  std::span<const std::byte> parameters;  ///< KernelInfo::parameterBytes of them
};

/// Output of a kernel. `text`: from printf. `assertion`: the line of a failed assert, for stderr.
struct Output {
  std::function<void(std::string_view)> text;
  std::function<void(std::string_view)> assertion;
};

/// Services of the driver for CUDA's device runtime, which a kernel calls. Thread-safe.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  /// Memory for the parameters of a launch; 0 if there is none left.
  virtual std::uint64_t allocate(std::uint64_t bytes) = 0;
  virtual void release(std::uint64_t address) = 0;
  /// The error of a launch that the driver refuses, or CUDA_SUCCESS.
  virtual CUresult checkLaunch(const Launch& launch) = 0;
  /// cudaGraphSetConditional. False if the context has no such condition.
  virtual bool setCondition(std::uint64_t handle, std::uint32_t value) = 0;
  virtual std::optional<std::size_t> limit(int limit) = 0;
  virtual std::optional<int> deviceAttribute(int attribute) = 0;
  virtual int functionAttribute(const Program& program, std::size_t kernel, int attribute) = 0;
  virtual int blocksPerMultiprocessor(const Program& program, std::size_t kernel, unsigned threads,
                                      std::size_t dynamicShared) = 0;
  virtual int cacheConfig() = 0;
  virtual int device() = 0;
  virtual int deviceCount() = 0;
  virtual int version() = 0;
};

/// The context's services for a kernel.
struct Environment {
  const AddressSpace* memory = nullptr;
  const Images* images = nullptr;  ///< null: none
  Output output;
  std::function<std::uint64_t(std::uint64_t)> deviceMalloc;  ///< returns 0 if the heap is full
  std::function<void(std::uint64_t)> deviceFree;
  DeviceRuntime* runtime = nullptr;
};

/// Runs a kernel and all kernels that it launches to their end on all cores, in one shared thread
/// pool (limited by NVIDIA_VIRTUAL_SIMULATOR_THREADS). The first fault ends the launch:
/// CUDA_ERROR_ILLEGAL_ADDRESS (700), MISALIGNED_ADDRESS (716), ASSERT (710), LAUNCH_FAILED (719,
/// trap), ILLEGAL_INSTRUCTION (715)…
CUresult execute(const Launch& launch, const Environment& environment);

/// Thread instructions that execute() has run in this process. For the benchmark.
std::uint64_t executedThreadInstructions();

}  // namespace simulator
