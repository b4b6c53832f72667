#include "native/simulator/ptx/machine/mbarrier.h"

#include <bit>

#include "native/simulator/ptx/machine/addresses.h"
#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/races.h"

namespace simulator::ptx {
namespace {

/// What our mbarrier keeps in its 64 opaque bits.
struct Object {
  std::uint64_t expected : 20;
  std::uint64_t pending : 20;
  std::uint64_t phase : 24;
};
static_assert(sizeof(Object) == 8);

Object* objectOf(Warp& w, const Operation* op, unsigned lane) {
  std::uint64_t address = addressOfLane(w, op, lane);
  if (address >> kWindowShift == 0) address |= kSharedWindow;
  void* found = address % 8 ? nullptr : hostAddress(w, lane, address, sizeof(Object));
  if (!found) w.fault(address % 8 ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS, op);
  return static_cast<Object*>(found);
}

Races* racesOf(Warp& w) {
  Checker* checker = w.block->run->checker;
  return checker ? checker->races() : nullptr;
}

template <class F>
const Operation* eachObject(Warp& w, const Operation* op, std::uint32_t mask, F act) {
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Object* object = objectOf(w, op, lane);
    if (!object) return nullptr;
    act(*object, lane);
  }
  return op + 1;
}

}  // namespace

const Operation* mbarrierInit(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint32_t* count = w.at<std::uint32_t>(op->slot[1]);
  return eachObject(w, op, mask, [&](Object& object, unsigned lane) {
    object = {count[lane] & 0xfffff, count[lane] & 0xfffff, 0};
  });
}

const Operation* mbarrierInvalidate(Warp& w, const Operation* op, std::uint32_t mask) {
  return eachObject(w, op, mask, [](Object& object, unsigned) { object = {0, 0, 0}; });
}

const Operation* mbarrierArrive(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint32_t* count = op->uses & 2 ? w.at<std::uint32_t>(op->slot[1]) : nullptr;
  return eachObject(w, op, mask, [&](Object& object, unsigned lane) {
    const Object before = object;
    if (Races* races = racesOf(w))
      races->release(w, lane, reinterpret_cast<std::uint64_t>(&object), true);
    const std::uint64_t arriving = count ? count[lane] : 1;
    object.pending = object.pending > arriving ? object.pending - arriving : 0;
    if (object.pending == 0) {
      object.pending = object.expected;
      ++object.phase;
    }
    if (op->defines & 1)
      w.at<std::uint64_t>(op->slot[0])[lane] = std::bit_cast<std::uint64_t>(before);
  });
}

const Operation* mbarrierTest(Warp& w, const Operation* op, std::uint32_t mask) {
  std::uint32_t complete = 0;
  w.spin();
  const Operation* after = eachObject(w, op, mask, [&](Object& object, unsigned lane) {
    const std::uint64_t waited =
        op->width ? w.at<std::uint32_t>(op->slot[1])[lane] & 1
                  : std::bit_cast<Object>(w.at<std::uint64_t>(op->slot[1])[lane]).phase;
    const bool done = op->width ? (object.phase & 1) != waited : object.phase != waited;
    complete |= static_cast<std::uint32_t>(done) << lane;
    if (Races* races = done ? racesOf(w) : nullptr)
      races->acquire(w, lane, reinterpret_cast<std::uint64_t>(&object));
  });
  w.assignPredicate(op->slot[0], complete, mask);
  return after;
}

}  // namespace simulator::ptx
