#include "native/simulator/ptx/machine/races.h"

#include <algorithm>
#include <bit>

#include "native/simulator/ptx/machine/multiprocessor.h"

namespace simulator::ptx {

void Races::begin(Block& block) {
  auto zero = std::make_shared<const Clocks>(block.threads);
  auto known = std::make_shared<const Known>(Known{{block.index, zero}});
  blocks_[block.index].assign(block.threads, Thread{1, known, nullptr});
  forget(reinterpret_cast<std::uint64_t>(block.shared), run_.sharedMapped());
}

void Races::forget(std::uint64_t address, std::uint64_t bytes) {
  for (std::uint64_t at = address / kWord * kWord; at < address + bytes;) {
    const auto page = pages_.find(at / kPage);
    if (page == pages_.end()) {
      at = (at / kPage + 1) * kPage;
      continue;
    }
    (*page->second)[at % kPage / kWord] = Cell{};
    at += kWord;
  }
}

Races::Thread& Races::threadOf(Warp& w, unsigned lane) {
  return blocks_[w.block->index][w.index * kLanes + lane];
}

Races::Cell& Races::cell(std::uint64_t address) {
  const std::uint64_t number = address / kPage;
  if (number != lastPageNumber_) {
    auto& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    lastPageNumber_ = number;
    lastPage_ = page.get();
  }
  return (*lastPage_)[address % kPage / kWord];
}

std::uint32_t Races::number(const Operation* op) {
  const auto [found, isNew] =
      numbers_.try_emplace(op, static_cast<std::uint32_t>(operations_.size()));
  if (isNew) operations_.push_back(op);
  return found->second;
}

bool Races::ordered(const Entry& before, const Entry& now, const Thread& thread) const {
  if (before.block == now.block && before.thread == now.thread) return true;
  const auto clocks = thread.known->find(before.block);
  return clocks != thread.known->end() && (*clocks->second)[before.thread] >= before.clock;
}

bool Races::strong(const Entry& a, const Entry& b) {
  return a.strong && b.strong && (a.block == b.block || (!a.narrow && !b.narrow));
}

void Races::conflict(Warp& w, unsigned lane, const Entry& before, const Entry& now,
                     std::uint64_t address) {
  const auto does = [](const Entry& entry) { return entry.writes ? "writes" : "reads"; };
  const Operation *first = operations_[before.operation], *second = operations_[now.operation];
  reports_.report(first, second, "data race on " + reports_.address(w, address),
                  {reports_.thread(before.block, before.thread) + " " + does(before) + " at " +
                       reports_.place(first),
                   reports_.thread(w, lane) + " " + does(now) + " at " + reports_.place(second),
                   "nothing orders these two accesses"});
}

void Races::access(Warp& w, unsigned lane, const Operation* op, const Access& access, bool writes,
                   std::uint64_t address, unsigned bytes, bool changes) {
  const Thread& thread = threadOf(w, lane);
  Entry now;
  now.block = static_cast<std::uint32_t>(w.block->index);
  now.clock = thread.own;
  now.operation = number(op);
  now.thread = static_cast<std::uint16_t>(w.index * kLanes + lane);
  now.strong = access.strong;
  now.narrow = access.narrow;
  now.writes = writes;
  for (const std::uint64_t end = address + bytes; address < end;) {
    const std::uint64_t offset = address % kWord, part = std::min(end - address, kWord - offset);
    now.bytes = static_cast<std::uint8_t>(((1u << part) - 1) << offset);
    Cell& at = cell(address);
    const auto races = [&](const Entry& before) {
      return before.clock && (before.bytes & now.bytes) && !strong(before, now) &&
             !ordered(before, now, thread);
    };
    if ((!writes || changes) && races(at.write)) conflict(w, lane, at.write, now, address);
    for (const Entry& read : at.reads) {
      if (writes && races(read)) conflict(w, lane, read, now, address);
    }
    remember(at, now, *this, thread);
    address += part;
  }
}

/// Keeps two of the reads that are not ordered yet: of different threads, of different warps
/// if possible.
void Races::remember(Cell& cell, const Entry& now, const Races& races, const Thread& thread) {
  if (now.writes) {
    cell.write = now;
    return;
  }
  for (Entry& read : cell.reads) {
    if (read.clock == 0 || races.ordered(read, now, thread)) {
      read = now;
      return;
    }
  }
  if (cell.reads[0].block == cell.reads[1].block &&
      cell.reads[0].thread / kLanes == cell.reads[1].thread / kLanes)
    cell.reads[1] = now;
}

std::shared_ptr<const Races::Known> Races::merged(const std::shared_ptr<const Known>& into,
                                                  const std::shared_ptr<const Known>& from) {
  if (!into || into == from) return from;
  std::shared_ptr<Known> changed;
  for (const auto& [block, clocks] : *from) {
    const auto found = into->find(block);
    if (found != into->end() && found->second == clocks) continue;
    std::shared_ptr<const Clocks> both = clocks;
    if (found != into->end()) {
      auto greatest = std::make_shared<Clocks>(*found->second);
      for (std::size_t i = 0; i < greatest->size(); ++i)
        (*greatest)[i] = std::max((*greatest)[i], (*clocks)[i]);
      both = std::move(greatest);
    }
    if (!changed) changed = std::make_shared<Known>(*into);
    (*changed)[block] = std::move(both);
  }
  return changed ? changed : into;
}

std::shared_ptr<const Races::Known> Races::withThemselves(Warp& w, std::uint32_t mask) {
  std::shared_ptr<const Known> all;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const Thread& thread = threadOf(w, static_cast<unsigned>(std::countr_zero(left)));
    if (thread.known != all) all = merged(all, thread.known);
  }
  auto result = std::make_shared<Known>(*all);
  auto& clocks = (*result)[w.block->index];
  auto own = std::make_shared<Clocks>(*clocks);
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    (*own)[w.index * kLanes + lane] = threadOf(w, lane).own;
  }
  clocks = std::move(own);
  return result;
}

void Races::tick(Warp& w, std::uint32_t mask) {
  for (std::uint32_t left = mask; left; left &= left - 1)
    ++threadOf(w, static_cast<unsigned>(std::countr_zero(left))).own;
}

void Races::fence(Warp& w, std::uint32_t mask) {
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    threadOf(w, lane).fenced = withThemselves(w, 1u << lane);
  }
  tick(w, mask);
}

void Races::meet(Warp& w, std::uint32_t mask) {
  const auto all = withThemselves(w, mask);
  for (std::uint32_t left = mask; left; left &= left - 1)
    threadOf(w, static_cast<unsigned>(std::countr_zero(left))).known = all;
  tick(w, mask);
}

void Races::bring(Warp& w, std::uint32_t mask, std::uint64_t meeting) {
  auto& known = meetings_[meeting];
  known = merged(known, withThemselves(w, mask));
  tick(w, mask);
}

void Races::take(Warp& w, std::uint32_t mask, std::uint64_t meeting) {
  const auto& known = meetings_[meeting];
  std::shared_ptr<const Known> before, after;  // lanes of a warp mostly know the same
  for (std::uint32_t left = mask; left; left &= left - 1) {
    auto& own = threadOf(w, static_cast<unsigned>(std::countr_zero(left))).known;
    if (own != before || !after) {
      before = own;
      after = merged(known, own);
    }
    own = after;
  }
}

void Races::acquire(Warp& w, unsigned lane, std::uint64_t location) {
  const auto found = released_.find(location);
  if (found == released_.end()) return;
  auto& known = threadOf(w, lane).known;
  known = merged(known, found->second);
}

void Races::release(Warp& w, unsigned lane, std::uint64_t location, bool all) {
  Thread& thread = threadOf(w, lane);
  if (!all && !thread.fenced) return;
  auto& known = released_[location];
  known = merged(known, all ? withThemselves(w, 1u << lane) : thread.fenced);
  if (all) ++thread.own;
}

}  // namespace simulator::ptx
