// Data races within one launch, found by happens-before (Lamport clocks of every thread, as
// FastTrack has them).
//
// A thread's clock ticks when it releases. Two accesses to the same bytes, one of them a write,
// race if neither thread knows that the other had got so far. Knowledge travels by barriers,
// bar.warp.sync, mbarriers, and from a release to each strong read of the location.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "native/simulator/ptx/machine/access.h"
#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/machine/reports.h"

namespace simulator::ptx {

class Races {
 public:
  Races(Reports& reports, const Run& run) : reports_(reports), run_(run) {}

  void begin(Block& block);
  void end(const Block& block) { blocks_.erase(block.index); }
  void forget(std::uint64_t address, std::uint64_t bytes);
  /// `changes`: a store that leaves memory as it was races only with reads.
  void access(Warp& w, unsigned lane, const Operation* op, const Access& access, bool writes,
              std::uint64_t address, unsigned bytes, bool changes = true);
  void fence(Warp& w, std::uint32_t mask);
  /// Lanes of a warp that wait for each other.
  void meet(Warp& w, std::uint32_t mask);
  /// Threads that arrive at a barrier bring what they know, those that leave it take what was
  /// brought.
  void bring(Warp& w, std::uint32_t mask, std::uint64_t meeting);
  void take(Warp& w, std::uint32_t mask, std::uint64_t meeting);
  void dissolve(std::uint64_t meeting) { meetings_.erase(meeting); }
  /// A strong access to `location` takes what was released there.
  void acquire(Warp& w, unsigned lane, std::uint64_t location);
  /// Releases what the thread knew at its last fence; `all`: what it knows now.
  void release(Warp& w, unsigned lane, std::uint64_t location, bool all);

 private:
  using Clocks = std::vector<std::uint32_t>;  ///< of the threads of one block
  using Known = std::map<std::uint64_t, std::shared_ptr<const Clocks>>;
  struct Thread {
    std::uint32_t own = 1;
    std::shared_ptr<const Known> known;
    std::shared_ptr<const Known> fenced;  ///< what it knew, itself included, at its last fence
  };
  struct Entry {
    std::uint32_t block = 0, clock = 0;  ///< clock 0: none
    std::uint32_t operation = 0;
    std::uint16_t thread = 0;
    std::uint8_t bytes = 0;  ///< of the word, one bit each
    std::uint8_t strong : 1 = 0, narrow : 1 = 0, writes : 1 = 0;
  };
  struct Cell {
    Entry write, reads[2];
  };
  static constexpr std::uint64_t kPage = 1024, kWord = 4;
  using Page = std::array<Cell, kPage / kWord>;

  Thread& threadOf(Warp& w, unsigned lane);
  Cell& cell(std::uint64_t address);
  std::uint32_t number(const Operation* op);
  bool ordered(const Entry& before, const Entry& now, const Thread& thread) const;
  static bool strong(const Entry& a, const Entry& b);
  void conflict(Warp& w, unsigned lane, const Entry& before, const Entry& now,
                std::uint64_t address);
  static void remember(Cell& cell, const Entry& now, const Races& races, const Thread& thread);
  /// `into` with everything that `from` has; the same object when that is nothing new.
  static std::shared_ptr<const Known> merged(const std::shared_ptr<const Known>& into,
                                             const std::shared_ptr<const Known>& from);
  /// Merges what the lanes know, and adds their own progress.
  std::shared_ptr<const Known> withThemselves(Warp& w, std::uint32_t mask);
  void tick(Warp& w, std::uint32_t mask);

  Reports& reports_;
  const Run& run_;
  std::unordered_map<std::uint64_t, std::vector<Thread>> blocks_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Known>> released_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Known>> meetings_;
  std::unordered_map<const Operation*, std::uint32_t> numbers_;
  std::vector<const Operation*> operations_;
  std::uint64_t lastPageNumber_ = ~0ull;
  Page* lastPage_ = nullptr;
};

}  // namespace simulator::ptx
