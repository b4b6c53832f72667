// Activations of functions: their registers, their local memory, arguments and results.
#include "native/simulator/ptx/machine/call.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/program/program.h"
#include "native/simulator/ptx/runtime/builtins.h"

namespace simulator::ptx {
namespace {

/// Activations that a block keeps for the next ones: those of all of its warps, and some calls.
constexpr std::size_t kSpareFrames = 64;

std::size_t frameBytes(const Code& code) {
  return (Frame::kHeader + code.frameBytes + 63) & ~std::size_t{63};
}

std::uint8_t* localOf(Warp& w, unsigned lane, std::uint32_t offset) {
  return w.local + static_cast<std::size_t>(lane) * w.localStride + offset;
}

void copyPlaces(Warp& w, std::uint32_t lanes, std::uint32_t fromBase,
                const std::vector<ParameterPlace>& from, std::uint32_t toBase,
                const std::vector<ParameterPlace>& to) {
  for (std::size_t i = 0; i < from.size() && i < to.size(); ++i) {
    const std::uint32_t bytes = std::min(from[i].bytes, to[i].bytes);
    for (std::uint32_t left = lanes; left; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      std::memcpy(localOf(w, lane, toBase + to[i].offset),
                  localOf(w, lane, fromBase + from[i].offset), bytes);
    }
  }
}

const Operation* callCode(Warp& w, const Operation* op, std::uint32_t mask, const Code& code,
                          const CallSite& site) {
  Frame* callee = w.open(code, w.frame, mask);
  if (callee->localTop > w.localBytes) {
    w.close(callee);
    return w.fault(CUDA_ERROR_ILLEGAL_ADDRESS, op);  // the stack is full
  }
  callee->returnTo = op + 1;
  callee->site = &site;
  copyPlaces(w, mask, w.frame->localBase, site.arguments, callee->localBase, code.parameters);
  w.suspendIn(callee, code.operations.data(), mask);
  return w.next();
}

}  // namespace

SpareFrames::~SpareFrames() {
  for (const Spare& spare : spares_) std::free(spare.memory);
}

void* SpareFrames::take(std::size_t bytes) {
  if (!spares_.empty() && spares_.back().bytes == bytes) {
    void* memory = spares_.back().memory;
    spares_.pop_back();
    return memory;
  }
  void* memory = std::aligned_alloc(64, bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}

void SpareFrames::giveBack(void* memory, std::size_t bytes) {
  // Spares of another size would be in the way of those that the running kernel needs.
  while (!spares_.empty() && spares_.back().bytes != bytes) {
    std::free(spares_.back().memory);
    spares_.pop_back();
  }
  if (spares_.size() < kSpareFrames) {
    spares_.push_back({memory, bytes});
  } else {
    std::free(memory);
  }
}

Frame* Warp::open(const Code& code, Frame* parent, std::uint32_t lanes) {
  const std::size_t bytes = frameBytes(code);
  void* memory = block->spareFrames.take(bytes);
  std::memset(memory, 0, bytes);
  auto* result = new (memory) Frame{};
  result->code = &code;
  result->parent = parent;
  result->depth = parent ? parent->depth + 1 : 0;
  result->lanes = lanes;
  result->localBase = parent ? parent->localTop : 0;
  result->localTop = result->localBase + code.localBytes;
  result->following = block->frames;
  if (block->frames) block->frames->previous = result;
  block->frames = result;
  return result;
}

void Warp::close(Frame* closed) {
  (closed->previous ? closed->previous->following : block->frames) = closed->following;
  if (closed->following) closed->following->previous = closed->previous;
  block->spareFrames.giveBack(closed, frameBytes(*closed->code));
}

void Warp::leaveFrames(Frame* from, std::uint32_t lanes) {
  while (from) {
    Frame* parent = from->parent;
    from->lanes &= ~lanes;
    if (from->lanes == 0) close(from);
    from = parent;
  }
}

const Operation* callDirect(Warp& w, const Operation* op, std::uint32_t mask) {
  const CallSite& site = w.frame->code->calls[op->target];
  if (const std::uint32_t rest = w.active & ~mask) w.suspend(op + 1, rest);
  if (mask == 0) return w.next();
  return callCode(w, op, mask, LinkedProgram::of(*w.frame->code).code(site.function), site);
}

const Operation* callIndirect(Warp& w, const Operation* op, std::uint32_t mask) {
  const CallSite& site = w.frame->code->calls[op->target];
  const std::uint64_t* target = w.at<std::uint64_t>(op->slot[1]);
  const std::uint64_t wanted = target[std::countr_zero(mask)];
  std::uint32_t same = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    same |= ((mask >> lane) & (target[lane] == wanted ? 1u : 0u)) << lane;
  if (const std::uint32_t unguarded = w.active & ~mask) w.suspend(op + 1, unguarded);
  if (const std::uint32_t others = mask & ~same)
    w.suspend(op, others);  // they call when it is their turn
  const Code* code = LinkedProgram::codeAt(wanted);
  if (!code) return w.fault(CUDA_ERROR_INVALID_PC, op);
  return callCode(w, op, same, *code, site);
}

const Operation* callBuiltin(Warp& w, const Operation* op, std::uint32_t mask) {
  const CallSite& site = w.frame->code->calls[op->target];
  const Builtin builtin = static_cast<Builtin>(op->detail);
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    std::uint64_t arguments[kBuiltinArguments] = {};
    std::size_t words = 0;
    for (const ParameterPlace& place : site.arguments) {
      const std::size_t taken = (place.bytes + 7) / 8;
      if (words + taken > kBuiltinArguments) break;
      std::memcpy(&arguments[words], localOf(w, lane, w.frame->localBase + place.offset),
                  place.bytes);
      words += taken;
    }
    std::uint64_t result = 0;
    const CUresult failure = runBuiltin(builtin, w, lane, arguments, result);
    if (failure != CUDA_SUCCESS) return w.fault(failure, op);
    if (!site.results.empty()) {
      std::memcpy(localOf(w, lane, w.frame->localBase + site.results[0].offset), &result,
                  std::min(site.results[0].bytes, 8u));
    }
  }
  if (builtin == Builtin::AssertFail)
    return w.fault(CUDA_ERROR_ASSERT, op);  // after every lane has said which assertion failed
  return op + 1;
}

const Operation* returnFromCall(Warp& w, const Operation* op, std::uint32_t mask) {
  Frame* callee = w.frame;
  Frame* caller = callee->parent;
  if (!caller) return w.exitLanes(mask, op + 1);
  if (const std::uint32_t rest = w.active & ~mask) w.suspend(op + 1, rest);
  copyPlaces(w, mask, callee->localBase, callee->code->results, caller->localBase,
             callee->site->results);
  w.suspendIn(caller, callee->returnTo, mask);
  callee->lanes &= ~mask;
  if (callee->lanes == 0) w.close(callee);
  return w.next();
}

const Operation* allocateLocal(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint64_t* size = w.at<std::uint64_t>(op->slot[1]);
  std::uint64_t largest = 0;
  for (std::uint32_t left = mask; left; left &= left - 1)
    largest = std::max(largest, size[std::countr_zero(left)]);
  const std::uint32_t alignment = std::max(op->detail, 16u),
                      base = (w.frame->localTop + alignment - 1) & ~(alignment - 1);
  if (largest > w.localBytes || base + largest > w.localBytes)
    return w.fault(CUDA_ERROR_ILLEGAL_ADDRESS, op);
  w.frame->localTop = static_cast<std::uint32_t>((base + largest + 15) & ~std::uint64_t{15});
  std::uint64_t* result = w.at<std::uint64_t>(op->slot[0]);
  for (std::uint32_t left = mask; left; left &= left - 1) result[std::countr_zero(left)] = base;
  return op + 1;
}

const Operation* saveStack(Warp& w, const Operation* op, std::uint32_t mask) {
  std::uint64_t* result = w.at<std::uint64_t>(op->slot[0]);
  for (std::uint32_t left = mask; left; left &= left - 1)
    result[std::countr_zero(left)] = w.frame->localTop;
  return op + 1;
}

}  // namespace simulator::ptx
