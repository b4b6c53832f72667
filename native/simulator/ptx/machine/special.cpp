// Special registers: who a thread is, when it is, what its launch looks like.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <utility>

#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/machine/multiprocessor.h"

namespace simulator::ptx {
namespace {

enum class Special : int {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  Laneid,
  Warpid,
  Nwarpid,
  Smid,
  Nsmid,
  Gridid,
  MaskEq,
  MaskLe,
  MaskLt,
  MaskGe,
  MaskGt,
  Clock,
  ClockHi,
  Clock64,
  Timer,
  TimerLow,
  TimerHigh,
  DynamicShared,
  TotalShared,
  AggregateShared,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  IsExplicitCluster,
  ReservedBegin,
  ReservedEnd,
  ReservedCap,
  Reserved0,
  Reserved1,
  Envreg0,  // and 31 more
};

struct Entry {
  std::string_view name;
  Special special;
  unsigned bytes;
};

constexpr auto kEntries = std::to_array<Entry>({
    {"%tid.x", Special::TidX, 4},
    {"%tid.y", Special::TidY, 4},
    {"%tid.z", Special::TidZ, 4},
    {"%ntid.x", Special::NtidX, 4},
    {"%ntid.y", Special::NtidY, 4},
    {"%ntid.z", Special::NtidZ, 4},
    {"%ctaid.x", Special::CtaidX, 4},
    {"%ctaid.y", Special::CtaidY, 4},
    {"%ctaid.z", Special::CtaidZ, 4},
    {"%nctaid.x", Special::NctaidX, 4},
    {"%nctaid.y", Special::NctaidY, 4},
    {"%nctaid.z", Special::NctaidZ, 4},
    {"%laneid", Special::Laneid, 4},
    {"%warpid", Special::Warpid, 4},
    {"%nwarpid", Special::Nwarpid, 4},
    {"%smid", Special::Smid, 4},
    {"%nsmid", Special::Nsmid, 4},
    {"%gridid", Special::Gridid, 8},
    {"%lanemask_eq", Special::MaskEq, 4},
    {"%lanemask_le", Special::MaskLe, 4},
    {"%lanemask_lt", Special::MaskLt, 4},
    {"%lanemask_ge", Special::MaskGe, 4},
    {"%lanemask_gt", Special::MaskGt, 4},
    {"%clock", Special::Clock, 4},
    {"%clock_hi", Special::ClockHi, 4},
    {"%clock64", Special::Clock64, 8},
    {"%globaltimer", Special::Timer, 8},
    {"%globaltimer_lo", Special::TimerLow, 4},
    {"%globaltimer_hi", Special::TimerHigh, 4},
    {"%dynamic_smem_size", Special::DynamicShared, 4},
    {"%total_smem_size", Special::TotalShared, 4},
    {"%aggr_smem_size", Special::AggregateShared, 4},
    {"%clusterid.x", Special::ClusteridX, 4},
    {"%clusterid.y", Special::ClusteridY, 4},
    {"%clusterid.z", Special::ClusteridZ, 4},
    {"%nclusterid.x", Special::NclusteridX, 4},
    {"%nclusterid.y", Special::NclusteridY, 4},
    {"%nclusterid.z", Special::NclusteridZ, 4},
    {"%cluster_ctaid.x", Special::ClusterCtaidX, 4},
    {"%cluster_ctaid.y", Special::ClusterCtaidY, 4},
    {"%cluster_ctaid.z", Special::ClusterCtaidZ, 4},
    {"%cluster_nctaid.x", Special::ClusterNctaidX, 4},
    {"%cluster_nctaid.y", Special::ClusterNctaidY, 4},
    {"%cluster_nctaid.z", Special::ClusterNctaidZ, 4},
    {"%cluster_ctarank", Special::ClusterCtarank, 4},
    {"%cluster_nctarank", Special::ClusterNctarank, 4},
    {"%reserved_smem_offset_begin", Special::ReservedBegin, 4},
    {"%reserved_smem_offset_end", Special::ReservedEnd, 4},
    {"%reserved_smem_offset_cap", Special::ReservedCap, 4},
    {"%reserved_smem_offset_0", Special::Reserved0, 4},
    {"%reserved_smem_offset_1", Special::Reserved1, 4},
    {"%is_explicit_cluster", Special::IsExplicitCluster, 0},
});

std::uint64_t nanoseconds(bool wallClock) {
  if (wallClock)
    return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}

std::uint32_t reservedBegin(const Run& run) { return (run.sharedBytes + 15) & ~15u; }

std::size_t axis(int number, Special first) {
  return static_cast<std::size_t>(number - static_cast<int>(first));
}

/// Special registers that are the same for all lanes of a warp.
std::uint64_t uniformValue(Warp& w, int number) {
  const Block& block = *w.block;
  const Run& run = *block.run;
  const Launch& launch = run.launch;
  const auto special = static_cast<Special>(number);
  if (number >= static_cast<int>(Special::Envreg0)) {
    // grid.sync() finds its barrier through these two; they are zero unless the launch is
    // cooperative.
    const std::uint64_t workspace =
        launch.cooperative ? reinterpret_cast<std::uint64_t>(run.gridWorkspace) : 0;
    if (number == static_cast<int>(Special::Envreg0) + 1) return workspace >> 32;
    return number == static_cast<int>(Special::Envreg0) + 2 ? workspace & 0xffffffff : 0;
  }
  if (special >= Special::NtidX && special <= Special::NtidZ)
    return launch.block[axis(number, Special::NtidX)];
  if (special >= Special::CtaidX && special <= Special::CtaidZ)
    return block.position[axis(number, Special::CtaidX)];
  if (special >= Special::NctaidX && special <= Special::NctaidZ)
    return launch.grid[axis(number, Special::NctaidX)];
  if (special >= Special::ClusteridX && special <= Special::ClusteridZ) {
    const std::size_t a = axis(number, Special::ClusteridX);
    return block.position[a] / launch.cluster[a];
  }
  if (special >= Special::NclusteridX && special <= Special::NclusteridZ) {
    const std::size_t a = axis(number, Special::NclusteridX);
    return launch.grid[a] / launch.cluster[a];
  }
  if (special >= Special::ClusterCtaidX && special <= Special::ClusterCtaidZ) {
    const std::size_t a = axis(number, Special::ClusterCtaidX);
    return block.position[a] % launch.cluster[a];
  }
  if (special >= Special::ClusterNctaidX && special <= Special::ClusterNctaidZ)
    return launch.cluster[axis(number, Special::ClusterNctaidX)];
  switch (special) {
    case Special::Warpid: return w.index;
    case Special::Nwarpid: return 64;
    case Special::Smid: return w.processor->index;
    case Special::Nsmid: return run.multiprocessors;
    case Special::Gridid: return run.gridId;
    case Special::Clock:
    case Special::Clock64: return nanoseconds(false);
    case Special::ClockHi: return nanoseconds(false) >> 32;
    case Special::Timer:
    case Special::TimerLow: return nanoseconds(true);
    case Special::TimerHigh: return nanoseconds(true) >> 32;
    case Special::DynamicShared: return launch.dynamicSharedBytes;
    case Special::TotalShared:
    case Special::AggregateShared: return run.sharedBytes;
    case Special::ReservedBegin:
    case Special::Reserved0: return reservedBegin(run);
    case Special::ReservedEnd:
    case Special::ReservedCap: return reservedBegin(run) + kReservedShared;
    case Special::Reserved1: return reservedBegin(run) + kReservedShared / 2;
    case Special::ClusterCtarank: return block.rank;
    case Special::ClusterNctarank: return run.blocksPerCluster;
    case Special::IsExplicitCluster: return run.blocksPerCluster > 1;
    default: return 0;
  }
}

std::uint64_t laneValue(Warp& w, Special special, unsigned lane) {
  const std::uint32_t self = 1u << lane;
  switch (special) {
    case Special::Laneid: return lane;
    case Special::MaskEq: return self;
    case Special::MaskLt: return self - 1;
    case Special::MaskLe: return self | (self - 1);
    case Special::MaskGe: return ~(self - 1);
    case Special::MaskGt: return ~(self | (self - 1));
    default: return w.tid[axis(static_cast<int>(special), Special::TidX)][lane];
  }
}

bool variesByLane(Special special) {
  return special <= Special::TidZ || special == Special::Laneid ||
         (special >= Special::MaskEq && special <= Special::MaskGt);
}

template <class T>
void assignLanes(Warp& w, Slot slot, std::uint32_t mask, const std::uint64_t* value) {
  T* d = w.at<T>(slot);
  if (mask == kAllLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) d[lane] = static_cast<T>(value[lane]);
    return;
  }
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    d[lane] = static_cast<T>(value[lane]);
  }
}

}  // namespace

int specialNumber(std::string_view name, unsigned& bytes) {
  for (const Entry& entry : kEntries) {
    if (entry.name != name) continue;
    bytes = entry.bytes;
    return static_cast<int>(entry.special);
  }
  bytes = 4;
  if (!name.starts_with("%envreg") || name.size() < 8 || name.size() > 9) return -1;
  int number = 0;
  for (const char c : name.substr(7)) number = c >= '0' && c <= '9' ? number * 10 + c - '0' : 99;
  return number < 32 ? static_cast<int>(Special::Envreg0) + number : -1;
}

const Operation* readSpecial(Warp& w, const Operation* op, std::uint32_t mask) {
  const auto number = static_cast<int>(op->immediate);
  if (op->width == 0) {
    w.assignPredicate(op->slot[0], uniformValue(w, number) ? ~0u : 0, mask);
    return op + 1;
  }
  std::uint64_t value[kLanes];
  if (variesByLane(static_cast<Special>(number))) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      value[lane] = laneValue(w, static_cast<Special>(number), lane);
  } else {
    std::fill_n(value, kLanes, uniformValue(w, number));
  }
  if (op->width == 2) assignLanes<std::uint16_t>(w, op->slot[0], mask, value);
  if (op->width == 4) assignLanes<std::uint32_t>(w, op->slot[0], mask, value);
  if (op->width == 8) assignLanes<std::uint64_t>(w, op->slot[0], mask, value);
  if (static_cast<Special>(number) >= Special::Clock &&
      static_cast<Special>(number) <= Special::TimerHigh)
    w.spin();
  return op + 1;
}

}  // namespace simulator::ptx
