#include "native/simulator/ptx/machine/checks.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "native/simulator/ptx/machine/addresses.h"
#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/machine/races.h"

namespace simulator::ptx {
namespace {

Checks fromEnvironment() {
  Checks result;
  const char* text = std::getenv("NVIDIA_VIRTUAL_SIMULATOR_CHECK");
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word == "races")
      result.races = true;
    else if (word == "memory")
      result.memory = true;
    else if (word == "barriers")
      result.barriers = true;
    else
      result.unknown = word;
  }
  return result;
}

/// The address of each lane as the program computes it, without what it has beyond the generic
/// form.
std::uint64_t addressOf(Warp& w, const Operation* op, unsigned slot, std::int64_t offset,
                        unsigned lane) {
  auto address = static_cast<std::uint64_t>(offset);
  if (op->flags & Operation::kFrameLocal) address += w.frame->localBase;
  if (slot != Operation::kAddress)
    return address + w.at<std::uint64_t>(op->slot[slot])[lane];  // the source of a copy
  if (!(op->flags & Operation::kHasAddress)) return address;
  return address + (op->flags & Operation::kWideAddress
                        ? w.at<std::uint64_t>(op->slot[slot])[lane]
                        : w.at<std::uint32_t>(op->slot[slot])[lane]);
}

std::uint64_t windowOf(Space space) {
  if (space == Space::Shared) return kSharedWindow;
  if (space == Space::Local) return kLocalWindow;
  return space == Space::Param ? kParameterWindow : 0;
}

/// An access of one lane: the program's address, and the address in this process.
struct Touch {
  std::uint64_t generic = 0;
  std::uint8_t* host = nullptr;
  bool race = false;  ///< other threads can reach it
};

/// The touch of a lane; reports one that misses.
Touch touch(Warp& w, const Operation* op, const Access& access, Space space, std::uint64_t address,
            unsigned lane) {
  Touch result;
  const std::uint64_t window = windowOf(space);
  result.generic = window && address >> kWindowShift == 0 ? address | window : address;
  const std::uint64_t found = result.generic & ~kWindowOffset;
  result.race = found == 0 || found == kSharedWindow;
  if (address % access.bytes) {
    if (checks().memory) w.block->run->checker->misaligned(w, lane, op, access, result.generic);
    return result;
  }
  result.host =
      static_cast<std::uint8_t*>(hostAddress(w, lane, result.generic, access.bytes, Use::read));
  if (!result.host && checks().memory)
    w.block->run->checker->outside(w, lane, op, access, result.generic);
  return result;
}

void recordLoad(Warp& w, const Operation* op, const Access& access, const Touch& touched,
                unsigned lane) {
  Races* races = w.block->run->checker->races();
  if (!races || !touched.host || !touched.race) return;
  const auto at = reinterpret_cast<std::uint64_t>(touched.host);
  if (access.strong) races->acquire(w, lane, at);
  races->access(w, lane, op, access, access.kind == Access::Kind::Atomic, at, access.bytes);
  if (access.kind == Access::Kind::Atomic) {
    Access reading = access;
    races->access(w, lane, op, reading, false, at, access.bytes);
    races->release(w, lane, at, access.release);
  }
}

/// Lane by lane, so that two lanes that write different values to one place are seen.
const Operation* storeEach(Warp& w, const Operation* op, const Access& access, std::uint32_t mask) {
  Races* races = w.block->run->checker->races();
  const Operation* next = op + 1;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const Touch touched = touch(w, op, access, access.space,
                                addressOf(w, op, Operation::kAddress, op->immediate, lane), lane);
    std::uint8_t before[32];
    const bool watched = races && touched.host && touched.race && access.bytes <= sizeof before;
    if (watched) std::memcpy(before, touched.host, access.bytes);
    next = op->inner(w, op, 1u << lane);
    if (!next) return nullptr;
    if (!watched) continue;
    const bool changes = std::memcmp(before, touched.host, access.bytes) != 0;
    const auto at = reinterpret_cast<std::uint64_t>(touched.host);
    races->access(w, lane, op, access, true, at, access.bytes, changes);
    if (access.strong) races->release(w, lane, at, access.release);
  }
  return next;
}

/// One unit of a copy, `offset` bytes behind its beginning.
void copyUnit(Warp& w, const Operation* op, const Access& access, unsigned lane,
              std::uint32_t offset, bool reads) {
  Races* races = w.block->run->checker->races();
  const Touch to = touch(w, op, access, access.space,
                         addressOf(w, op, Operation::kAddress, op->immediate + offset, lane), lane);
  if (reads) {
    const std::int64_t behind = static_cast<std::int32_t>(op->target);
    const Touch from =
        touch(w, op, access, Space::Generic, addressOf(w, op, 0, behind + offset, lane), lane);
    Access reading = access;
    reading.strong = false;
    if (races && from.host)
      races->access(w, lane, op, reading, false, reinterpret_cast<std::uint64_t>(from.host),
                    access.bytes);
  }
  if (races && to.host)
    races->access(w, lane, op, access, true, reinterpret_cast<std::uint64_t>(to.host),
                  access.bytes);
}

void copyLane(Warp& w, const Operation* op, const Access& access, unsigned lane) {
  const std::uint32_t taken = op->uses & 2 ? w.at<std::uint32_t>(op->slot[1])[lane] : op->width;
  const std::uint32_t bytes = access.kind == Access::Kind::Bulk ? taken : access.bytes;
  for (std::uint32_t offset = 0; offset < bytes; offset += access.bytes)
    copyUnit(w, op, access, lane, offset, taken != 0);
}

}  // namespace

const Checks& checks() {
  static const Checks all = fromEnvironment();
  return all;
}

const Operation* checkedAccess(Warp& w, const Operation* op, std::uint32_t mask) {
  const Access access = Access::of(op->detail);
  if (access.kind == Access::Kind::Store) return storeEach(w, op, access, mask);
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (access.kind == Access::Kind::Copy || access.kind == Access::Kind::Bulk) {
      copyLane(w, op, access, lane);
      continue;
    }
    const std::uint64_t address = addressOf(w, op, Operation::kAddress, op->immediate, lane);
    recordLoad(w, op, access, touch(w, op, access, access.space, address, lane), lane);
  }
  return op->inner(w, op, mask);
}

Checker::Checker(Run& run) : run_(run), reports_(run) {
  if (checks().races) races_ = std::make_unique<Races>(reports_, run);
}

Checker::~Checker() = default;

void Checker::blockBegins(Block& block) {
  if (races_) races_->begin(block);
}

void Checker::blockEnds(const Block& block) {
  if (races_) races_->end(block);
}

void Checker::allocated(std::uint64_t address, std::uint64_t bytes) {
  if (races_) races_->forget(address, bytes);
}

void Checker::outside(Warp& w, unsigned lane, const Operation* op, const Access& access,
                      std::uint64_t generic) {
  const std::uint64_t offset = generic & kWindowOffset;
  std::string where = "memory at " + hexadecimal(generic), what;
  switch (generic & ~kWindowOffset) {
    case 0: what = run_.environment.memory->describe(generic); break;
    case kSharedWindow:
      where = "shared memory at " + hexadecimal(offset);
      what = "the block has " + std::to_string(w.sharedBytes) + " bytes of it";
      break;
    case kLocalWindow:
      where = "local memory at " + hexadecimal(offset);
      what = "the thread has " + std::to_string(w.localBytes) + " bytes of it";
      break;
    default: break;
  }
  std::vector<std::string> details{
      reports_.thread(w, lane) + (access.kind == Access::Kind::Load ? " reads " : " writes ") +
      std::to_string(access.bytes) + " bytes at " + reports_.place(op)};
  if (!what.empty()) details.push_back(what);
  reports_.report(op, nullptr, "access outside of an allocation: " + where, details);
}

void Checker::misaligned(Warp& w, unsigned lane, const Operation* op, const Access& access,
                         std::uint64_t generic) {
  reports_.report(
      op, nullptr,
      "misaligned access: " + hexadecimal(generic & kWindowOffset) + " is no multiple of " +
          std::to_string(access.bytes),
      {reports_.thread(w, lane) + (access.kind == Access::Kind::Load ? " reads " : " writes ") +
       std::to_string(access.bytes) + " bytes at " + reports_.place(op)});
}

void Checker::image(Warp& w, unsigned lane, const Operation* op, const std::string& what) {
  reports_.report(op, nullptr, "wrong access to an image: " + what,
                  {reports_.thread(w, lane) + " makes it at " + reports_.place(op)});
}

}  // namespace simulator::ptx
