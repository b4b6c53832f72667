#include "native/simulator/ptx/machine/matrix.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "native/simulator/ptx/machine/addresses.h"
#include "native/simulator/ptx/machine/multiprocessor.h"

namespace simulator::ptx {
namespace {

MatrixAccess accessOf(const Operation* op) {
  const std::uint32_t words[2] = {op->detail, op->target};
  static_assert(sizeof(MatrixAccess) == sizeof words);
  return std::bit_cast<MatrixAccess>(words);
}

/// Like hostAddress(). `known`: the allocation that was found last.
void* hostAddressIn(Warp& w, Range& known, unsigned lane, std::uint64_t address,
                    std::uint64_t bytes, Use use) {
  if (address >= known.begin && address + bytes <= known.end)
    return reinterpret_cast<void*>(address);
  void* found = hostAddress(w, lane, address, bytes, use);
  if (found && address >> kWindowShift == 0) {
    const auto [begin, end] = w.processor->memory->around(address);
    known = {begin, end};
  }
  return found;
}

/// The host's address of one element; null after a fault.
std::uint8_t* elementAt(Warp& w, const Operation* op, const MatrixAccess& access, Range& known,
                        unsigned lane, unsigned element, Use use) {
  const unsigned number =
      (lane * access.perLane + element) % (unsigned{access.rows} * access.columns);
  const std::uint64_t row = number / access.columns, column = number % access.columns;
  const std::uint64_t stride = w.at<std::uint32_t>(op->slot[5])[lane] / access.divisor,
                      bytes = access.bytes;
  std::uint64_t address =
      addressOfLane(w, op, lane) +
      (access.columnMajor ? column * stride + row : row * stride + column) * bytes;
  if (access.shared && address >> kWindowShift == 0) address |= kSharedWindow;
  void* found = address % bytes ? nullptr : hostAddressIn(w, known, lane, address, bytes, use);
  if (!found)
    w.fault(address % bytes ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS, op);
  return static_cast<std::uint8_t*>(found);
}

/// Calls act(memory, in the register) for each element of the operation's registers.
template <class F>
const Operation* eachElement(Warp& w, const Operation* op, std::uint32_t mask,
                             std::uint8_t registers, Use use, F act) {
  const MatrixAccess access = accessOf(op);
  Range known;
  const unsigned bytes = access.bytes, registerBytes = std::max(4u, bytes),
                 inRegister = registerBytes / bytes;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    for (unsigned i = 0; i < 4; ++i) {
      if (!(registers & (1u << i))) continue;
      std::uint8_t* value = w.at<std::uint8_t>(op->slot[i]) + lane * registerBytes;
      for (unsigned e = 0; e < inRegister; ++e) {
        std::uint8_t* memory =
            elementAt(w, op, access, known, lane, access.first + i * inRegister + e, use);
        if (!memory) return nullptr;
        act(memory, value + e * bytes, bytes);
      }
    }
  }
  return op + 1;
}

}  // namespace

const Operation* loadMatrix(Warp& w, const Operation* op, std::uint32_t mask) {
  return eachElement(w, op, mask, op->defines, Use::read,
                     [](const std::uint8_t* memory, std::uint8_t* value, unsigned bytes) {
                       std::memcpy(value, memory, bytes);
                     });
}

const Operation* storeMatrix(Warp& w, const Operation* op, std::uint32_t mask) {
  return eachElement(w, op, mask, op->uses & 15, Use::write,
                     [](std::uint8_t* memory, const std::uint8_t* value, unsigned bytes) {
                       std::memcpy(memory, value, bytes);
                     });
}

}  // namespace simulator::ptx
