#include "native/simulator/ptx/machine/mbarrier.h"

#include <bit>

#include "native/simulator/ptx/machine/addresses.h"
#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/races.h"

namespace simulator::ptx {
namespace {

/// Layout of the 64 opaque bits of our mbarrier. Programs compare a phase with the one before it
/// at most.
struct Object {
  std::uint64_t expected : 20;
  std::uint64_t pending : 20;
  std::uint64_t transactions : 21;  ///< bytes that are still to come; a complement if negative
  std::uint64_t phase : 3;
};
static_assert(sizeof(Object) == 8);

Object* objectOf(Warp& w, const Operation* op, unsigned lane) {
  std::uint64_t address = addressOfLane(w, op, lane);
  if (address >> kWindowShift == 0) address |= kSharedWindow;
  void* found = address % 8 ? nullptr : hostAddress(w, lane, address, sizeof(Object), Use::write);
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

/// Ends the phase if nothing is left to wait for.
void settle(Object& object) {
  if (object.pending != 0 || object.transactions != 0) return;
  object.pending = object.expected;
  ++object.phase;
}

void release(Warp& w, unsigned lane, const Object& object) {
  if (Races* races = racesOf(w))
    races->release(w, lane, reinterpret_cast<std::uint64_t>(&object), true);
}

}  // namespace

const Operation* mbarrierInit(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint32_t* count = w.at<std::uint32_t>(op->slot[1]);
  return eachObject(w, op, mask, [&](Object& object, unsigned lane) {
    object = {count[lane] & 0xfffff, count[lane] & 0xfffff, 0, 0};
  });
}

const Operation* mbarrierInvalidate(Warp& w, const Operation* op, std::uint32_t mask) {
  return eachObject(w, op, mask, [](Object& object, unsigned) { object = {0, 0, 0, 0}; });
}

const Operation* mbarrierArrive(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint32_t* count = op->uses & 2 ? w.at<std::uint32_t>(op->slot[1]) : nullptr;
  const std::uint32_t* bytes = op->uses & 4 ? w.at<std::uint32_t>(op->slot[2]) : nullptr;
  return eachObject(w, op, mask, [&](Object& object, unsigned lane) {
    const Object before = object;
    release(w, lane, object);
    if (bytes) object.transactions += bytes[lane];
    const std::uint64_t arriving = count ? count[lane] : 1;
    if (op->width) object.expected -= arriving;
    object.pending = object.pending > arriving ? object.pending - arriving : 0;
    settle(object);
    if (op->defines & 1)
      w.at<std::uint64_t>(op->slot[0])[lane] = std::bit_cast<std::uint64_t>(before);
  });
}

const Operation* mbarrierExpect(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint32_t* bytes = w.at<std::uint32_t>(op->slot[1]);
  return eachObject(w, op, mask,
                    [&](Object& object, unsigned lane) { object.transactions += bytes[lane]; });
}

const Operation* mbarrierComplete(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint32_t* bytes = w.at<std::uint32_t>(op->slot[1]);
  return eachObject(w, op, mask, [&](Object& object, unsigned lane) {
    release(w, lane, object);
    object.transactions -= bytes[lane];
    settle(object);
  });
}

const Operation* mbarrierPending(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint64_t* state = w.at<std::uint64_t>(op->slot[1]);
  std::uint32_t* count = w.at<std::uint32_t>(op->slot[0]);
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    count[lane] = static_cast<std::uint32_t>(std::bit_cast<Object>(state[lane]).pending);
  }
  return op + 1;
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
