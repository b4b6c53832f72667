// execute(): one launch from its parameters to its result.
#include <xmmintrin.h>

#include <algorithm>
#include <new>
#include <utility>

#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/machine/thread_pool.h"
#include "native/simulator/ptx/program/program.h"
#include "native/simulator/ptx/runtime/children.h"

namespace simulator {
namespace ptx {
namespace {

std::atomic<std::uint64_t> executedInstructions{0};
std::atomic<std::uint64_t> launches{0};

constexpr std::size_t kTextLimit = 1 << 20;
/// Turns that a block gets before its thread begins another beside it: it may be waiting for one
/// that has not begun.
constexpr unsigned kTurnsAlone = 64;
constexpr std::size_t kResident = 64;

/// Multiprocessors that no launch uses, with the memory of their blocks.
class Spares {
 public:
  std::unique_ptr<Multiprocessor> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      auto made = std::make_unique<Multiprocessor>();
      made->index = made_++;
      return made;
    }
    auto result = std::move(free_.back());
    free_.pop_back();
    return result;
  }
  void giveBack(std::unique_ptr<Multiprocessor> spare) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(spare));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Multiprocessor>> free_;
  std::uint32_t made_ = 0;
};

Spares& spares() {
  static auto* const all = new Spares;
  return *all;
}

void participate(Run& run) {
  auto processor = spares().take();
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x1f80);
  processor->user.emplace();
  try {
    processor->work(run);
  } catch (const std::bad_alloc&) {
    run.fail(CUDA_ERROR_OUT_OF_MEMORY);
  }
  processor->user.reset();
  _mm_setcsr(before);
  executedInstructions += std::exchange(processor->executed, 0);
  spares().giveBack(std::move(processor));
}

}  // namespace

void Run::fail(CUresult code) {
  int none = CUDA_SUCCESS;
  family.result.compare_exchange_strong(none, code);
}

void Run::print(std::uint64_t block, std::string_view line) {
  const std::lock_guard lock(textMutex);
  text[block] += line;
  textBytes += line.size();
  if (textBytes > kTextLimit) deliver();
}

void Run::deliver() {
  for (const auto& [block, lines] : text) {
    if (environment.output.text) environment.output.text(lines);
  }
  text.clear();
  textBytes = 0;
}

Children& Run::children() {
  const std::lock_guard lock(childrenMutex);
  if (!ownChildren) ownChildren = std::make_unique<Children>(family);
  return *ownChildren;
}

bool Multiprocessor::claim(std::vector<Cluster>& resident) {
  const std::uint64_t first = run->claimed.fetch_add(run->blocksPerCluster);
  if (first >= run->blocks) return false;
  Cluster cluster;
  std::vector<Block*> members;
  for (std::uint32_t i = 0; i < run->blocksPerCluster; ++i) {
    if (idle.empty()) idle.push_back(std::make_unique<Block>());
    cluster.push_back(std::move(idle.back()));
    idle.pop_back();
    members.push_back(cluster.back().get());
    cluster.back()->begin(*run, *this, first + i);
  }
  for (auto& block : cluster) block->cluster = members;
  resident.push_back(std::move(cluster));
  return true;
}

bool Multiprocessor::stepAll(std::vector<Cluster>& resident) {
  bool ended = false;
  for (std::size_t i = 0; i < resident.size() && !run->stopped();) {
    bool moved = false, finished = true;
    for (auto& block : resident[i]) {
      if (!block->finished()) moved |= block->step();
      finished &= block->finished();
    }
    if (!finished && !moved && !run->stopped()) {  // its threads wait for each other for ever
      if (run->checker) run->checker->deadlock(resident[i]);
      run->fail(CUDA_ERROR_LAUNCH_TIMEOUT);
    }
    if (!finished) {
      ++i;
      continue;
    }
    ended = true;
    for (auto& block : resident[i]) {
      if (run->checker) run->checker->blockEnds(*block);
      idle.push_back(std::move(block));
    }
    resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return ended;
}

void Multiprocessor::work(Run& launch) {
  run = &launch;
  memory = launch.environment.memory;
  ranges.fill(Range{});
  std::vector<Cluster> resident;
  bool more = true;
  unsigned turns = 0;
  while (!launch.stopped()) {
    const bool crowded = resident.size() >= kResident && !launch.launch.cooperative;
    const bool wants =
        resident.empty() || launch.launch.cooperative || (turns >= kTurnsAlone && !crowded);
    if (more && wants) {
      more = claim(resident);
      turns = 0;
    }
    if (resident.empty()) break;
    turns = stepAll(resident) ? 0 : turns + 1;
  }
  for (Cluster& cluster : resident) {
    for (auto& block : cluster) {
      block->abandon();
      idle.push_back(std::move(block));
    }
  }
}

void runGrid(Family& family, const Launch& launch, unsigned depth) {
  const auto& program = static_cast<const LinkedProgram&>(*launch.program);
  const KernelInfo& info = program.kernels()[launch.kernel];
  Run run{launch, family.environment, program, program.kernelCode(launch.kernel), family, depth};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    run.blocks *= launch.grid[axis];
    run.blocksPerCluster *= launch.cluster[axis];
  }
  run.staticSharedBytes = info.staticSharedBytes;
  run.sharedBytes = program.sharedBytes(launch.kernel, launch.dynamicSharedBytes);
  run.localBytes = info.stackBytes;
  run.localStride = ((info.stackBytes + 63) & ~63u) |
                    64;  // an odd number of cache lines, so that lanes do not share a set
  run.gridId = ++launches;
  run.multiprocessors = ThreadPool::shared().size();
  {
    std::unique_ptr<Checker> checker;
    if (checks().any()) checker = std::make_unique<Checker>(run);
    run.checker = checker.get();
    const std::uint64_t helpers =
        checker ? 0 : std::min<std::uint64_t>(run.blocks / run.blocksPerCluster - 1, 1024);
    ThreadPool::shared().run(static_cast<unsigned>(helpers), [&run] { participate(run); });
  }
  run.deliver();
  if (run.ownChildren) run.ownChildren->finish();
}

}  // namespace ptx

CUresult execute(const Launch& launch, const Environment& environment) {
  const auto kernels = launch.program->kernels();
  if (launch.kernel >= kernels.size()) return CUDA_ERROR_INVALID_HANDLE;
  if (launch.parameters.size() < kernels[launch.kernel].parameterBytes)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] == 0 || launch.block[axis] == 0 || launch.cluster[axis] == 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (launch.grid[axis] % launch.cluster[axis]) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  if (std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2] > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  ptx::Family family(environment, ptx::checks().any());
  ptx::runGrid(family, launch, 0);
  return static_cast<CUresult>(family.result.load());
}

bool hasChecks() { return ptx::checks().any(); }

std::uint64_t executedThreadInstructions() { return ptx::executedInstructions.load(); }

}  // namespace simulator
