// NVIDIA_VIRTUAL_SIMULATOR_CHECK: what a run looks for in the program that it executes, and the
// reports.
//
// Off, nothing of this costs anything: the decoder wraps memory operations only when a check is on,
// and Run::checker is null. On, a launch runs on one thread, so the state of a check needs no
// locks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "native/simulator/ptx/machine/access.h"
#include "native/simulator/ptx/machine/operation.h"
#include "native/simulator/ptx/machine/reports.h"

namespace simulator::ptx {

struct Block;
struct Run;
struct Split;
class Races;

struct Checks {
  bool races = false, memory = false, barriers = false;
  std::string unknown;  ///< a word of the variable that names no check
  bool any() const { return races || memory || barriers; }
  bool accesses() const { return races || memory; }
};

/// Checks that the environment variable names; read once.
const Checks& checks();

/// Runs `inner` after (stores: with) the checks.
const Operation* checkedAccess(Warp& w, const Operation* op, std::uint32_t mask);

/// bar.warp.sync, which orders what its lanes did.
const Operation* checkedWarpBarrier(Warp& w, const Operation* op, std::uint32_t mask);

/// The state of one launch.
class Checker {
 public:
  explicit Checker(Run& run);
  ~Checker();
  Checker(const Checker&) = delete;

  Races* races() { return races_.get(); }
  void blockBegins(Block& block);
  void blockEnds(const Block& block);
  /// Memory that the device's heap allocates again.
  void allocated(std::uint64_t address, std::uint64_t bytes);

  // barriers
  void arrives(Warp& w, const Operation* op, std::uint32_t mask, std::uint32_t id,
               std::uint32_t count);
  void released(Block& block, unsigned id);
  void fenced(Warp& w, std::uint32_t mask);
  void mask(Warp& w, const Operation* op, std::uint32_t lanes);
  void clusterArrives(Warp& w, std::uint32_t mask);
  void clusterReleased(Block& block);
  void deadlock(const std::vector<std::unique_ptr<Block>>& cluster);

  // memory
  void outside(Warp& w, unsigned lane, const Operation* op, const Access& access,
               std::uint64_t address);
  void misaligned(Warp& w, unsigned lane, const Operation* op, const Access& access,
                  std::uint64_t address);
  /// A wrong access to a texture or surface; `what` says how.
  void image(Warp& w, unsigned lane, const Operation* op, const std::string& what);

 private:
  Run& run_;
  Reports reports_;
  std::unique_ptr<Races> races_;
};

}  // namespace simulator::ptx
