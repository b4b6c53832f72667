#include "native/simulator/ptx/runtime/builtins.h"

#include <cstring>
#include <string>

#include "native/simulator/ptx/machine/addresses.h"
#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/runtime/device_runtime.h"

namespace simulator::ptx {
namespace {

std::string triple(const std::uint32_t x, const std::uint32_t y, const std::uint32_t z) {
  return "[" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + "]";
}

CUresult printText(Warp& warp, unsigned lane, const std::uint64_t* arguments,
                   std::uint64_t& result) {
  std::string text;
  int taken = 0;
  if (!formatText(warp, lane, arguments[0], arguments[1], text, taken))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  warp.block->run->print(warp.block->index, text);
  result = static_cast<std::uint64_t>(static_cast<std::int64_t>(taken));
  return CUDA_SUCCESS;
}

/// arguments: expression, file, line, function, bytes of a character.
CUresult failAssertion(Warp& warp, unsigned lane, const std::uint64_t* arguments) {
  std::string expression, file, function;
  if (!readString(warp, lane, arguments[0], expression) ||
      !readString(warp, lane, arguments[1], file) ||
      !readString(warp, lane, arguments[3], function)) {
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  const auto& block = warp.block->position;
  const std::string line =
      file + ":" + std::to_string(static_cast<std::uint32_t>(arguments[2])) + ": " + function +
      ": block: " + triple(block[0], block[1], block[2]) +
      ", thread: " + triple(warp.tid[0][lane], warp.tid[1][lane], warp.tid[2][lane]) +
      " Assertion `" + expression + "` failed.\n";
  Run& run = *warp.block->run;
  const std::lock_guard lock(run.textMutex);
  if (run.environment.output.assertion) run.environment.output.assertion(line);
  return CUDA_SUCCESS;
}

CUresult copyBytes(Warp& warp, unsigned lane, const std::uint64_t* arguments,
                   std::uint64_t& result) {
  result = arguments[0];
  if (arguments[2] == 0) return CUDA_SUCCESS;
  void* to = hostAddress(warp, lane, arguments[0], arguments[2], Use::write);
  const void* from = hostAddress(warp, lane, arguments[1], arguments[2], Use::read);
  if (!to || !from) return CUDA_ERROR_ILLEGAL_ADDRESS;
  std::memmove(to, from, arguments[2]);
  return CUDA_SUCCESS;
}

CUresult fillBytes(Warp& warp, unsigned lane, const std::uint64_t* arguments,
                   std::uint64_t& result) {
  result = arguments[0];
  if (arguments[2] == 0) return CUDA_SUCCESS;
  void* to = hostAddress(warp, lane, arguments[0], arguments[2], Use::write);
  if (!to) return CUDA_ERROR_ILLEGAL_ADDRESS;
  std::memset(to, static_cast<int>(arguments[1]), arguments[2]);
  return CUDA_SUCCESS;
}

/// arguments: handle, value. A handle that names no condition is treated as a wrong address.
CUresult setConditional(const Environment& environment, const std::uint64_t* arguments) {
  const bool set =
      environment.runtime != nullptr &&
      environment.runtime->setCondition(arguments[0], static_cast<std::uint32_t>(arguments[1]));
  return set ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

}  // namespace

Builtin builtinNamed(std::string_view name) {
  if (name == "vprintf") return Builtin::Vprintf;
  if (name == "__assertfail") return Builtin::AssertFail;
  if (name == "malloc") return Builtin::Malloc;
  if (name == "free") return Builtin::Free;
  if (name == "memcpy" || name == "memmove") return Builtin::Memcpy;
  if (name == "memset") return Builtin::Memset;
  if (name == "cudaGraphSetConditional") return Builtin::SetConditional;
  const int function = runtimeFunction(name);
  return function < 0 ? Builtin::None
                      : static_cast<Builtin>(static_cast<std::uint32_t>(Builtin::DeviceRuntime) +
                                             static_cast<std::uint32_t>(function));
}

bool readString(Warp& warp, unsigned lane, std::uint64_t address, std::string& text) {
  for (std::size_t n = 0; n < (1 << 16); ++n) {
    const auto* c = static_cast<const char*>(hostAddress(warp, lane, address + n, 1, Use::read));
    if (!c) return false;
    if (*c == '\0') return true;
    text += *c;
  }
  return true;
}

CUresult runBuiltin(Builtin builtin, Warp& warp, unsigned lane, const std::uint64_t* arguments,
                    std::uint64_t& result) {
  const Environment& environment = warp.block->run->environment;
  switch (builtin) {
    case Builtin::Vprintf: return printText(warp, lane, arguments, result);
    case Builtin::AssertFail: return failAssertion(warp, lane, arguments);
    case Builtin::Malloc:
      result = environment.deviceMalloc ? environment.deviceMalloc(arguments[0]) : 0;
      if (Checker* checker = warp.block->run->checker; checker && result)
        checker->allocated(result, arguments[0]);
      return CUDA_SUCCESS;
    case Builtin::Free:
      if (environment.deviceFree && arguments[0]) environment.deviceFree(arguments[0]);
      return CUDA_SUCCESS;
    case Builtin::Memcpy: return copyBytes(warp, lane, arguments, result);
    case Builtin::Memset: return fillBytes(warp, lane, arguments, result);
    case Builtin::SetConditional: return setConditional(environment, arguments);
    case Builtin::None: return CUDA_ERROR_LAUNCH_FAILED;
    default:
      result = callRuntime(static_cast<int>(builtin) - static_cast<int>(Builtin::DeviceRuntime),
                           {warp, lane, arguments});
      return static_cast<CUresult>(warp.block->run->family.result.load());
  }
}

}  // namespace simulator::ptx
