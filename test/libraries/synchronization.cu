// libcu++: atomics of 1 to 8 bytes (16 bytes do not compile in this release), barriers, latches,
// semaphores, pipelines.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/atomic>

#include "check.h"

constexpr int kBlocks = 24, kThreads = 256;

/// Every thread adds by an atomic addition and by a compare-and-swap loop.
template <class T>
__global__ void adds(cuda::atomic<T, cuda::thread_scope_device>* sums) {
  sums[0].fetch_add(1, cuda::memory_order_relaxed);
  T seen = sums[1].load();
  while (!sums[1].compare_exchange_weak(seen, static_cast<T>(seen + 3))) {
  }
  if (threadIdx.x % 64 == 0)
    sums[2].fetch_or(static_cast<T>(1) << (threadIdx.x / 64 + blockIdx.x % 2 * 4));
}

template <class T>
void atomics(Cases& cases, const char* name) {
  Device<cuda::atomic<T, cuda::thread_scope_device>> sums(3);
  const std::vector<T> expected{static_cast<T>(kBlocks * kThreads),
                                static_cast<T>(kBlocks * kThreads * 3), static_cast<T>(0xff)};
  constexpr std::size_t kEach = sizeof *sums.data();  // an atomic of one byte uses four
  cases.check(name, expected, [&] {
    MUST(cudaMemset(sums.data(), 0, 3 * kEach));
    adds<T><<<kBlocks, kThreads>>>(sums.data());
    std::uint8_t bytes[3 * kEach];
    MUST(cudaMemcpy(bytes, sums.data(), sizeof bytes, cudaMemcpyDeviceToHost));
    std::vector<T> values(3);
    for (int i = 0; i < 3; ++i) std::memcpy(&values[i], bytes + i * kEach, sizeof(T));
    return values;
  });
}

struct alignas(8) Wide {
  std::uint32_t a, b;
};

/// Halves that must never be seen apart.
__global__ void wide(Wide* value, unsigned* torn) {
  cuda::atomic_ref<Wide, cuda::thread_scope_device> shared(*value);
  for (int i = 0; i < 8; ++i) {
    Wide seen = shared.load();
    if (seen.b != seen.a * 3) atomicAdd(torn, 1);
    while (!shared.compare_exchange_strong(seen, Wide{seen.a + 1, (seen.a + 1) * 3})) {
      if (seen.b != seen.a * 3) atomicAdd(torn, 1);
    }
  }
}

void wideAtomics(Cases& cases) {
  Device<Wide> value(1);
  Device<unsigned> torn(1);
  const std::uint32_t total = kBlocks * kThreads * 8;
  cases.check("atomics of a struct", std::vector<std::uint32_t>{total, total * 3, 0}, [&] {
    MUST(cudaMemset(value.data(), 0, sizeof(Wide)));
    MUST(cudaMemset(torn.data(), 0, sizeof(unsigned)));
    wide<<<kBlocks, kThreads>>>(value.data(), torn.data());
    const Wide result = value.read(1)[0];
    return std::vector<std::uint32_t>{result.a, result.b, torn.read(1)[0]};
  });
}

/// Blocks pass a message on, one after another, with release and acquire.
__global__ void relay(cuda::atomic<int, cuda::thread_scope_device>* turn, unsigned* message) {
  if (threadIdx.x != 0) return;
  while (turn->load(cuda::memory_order_acquire) != static_cast<int>(blockIdx.x)) {
  }
  for (int i = 0; i < 16; ++i) message[i] = message[i] * 5 + blockIdx.x + i;
  turn->store(blockIdx.x + 1, cuda::memory_order_release);
}

void relays(Cases& cases) {
  std::vector<unsigned> expected(16);
  for (unsigned block = 0; block < kBlocks; ++block) {
    for (unsigned i = 0; i < 16; ++i) expected[i] = expected[i] * 5 + block + i;
  }
  Device<cuda::atomic<int, cuda::thread_scope_device>> turn(1);
  Device<unsigned> message(16);
  cases.check("messages by release and acquire", expected, [&] {
    MUST(cudaMemset(turn.data(), 0, sizeof(int)));
    MUST(cudaMemset(message.data(), 0, 16 * sizeof(unsigned)));
    relay<<<kBlocks, 32>>>(turn.data(), message.data());
    return message.read(16);
  });
}

/// A barrier of a block whose completion function sums up the threads' values; then one of half of
/// the threads.
__global__ void barriers(unsigned* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> all, half;
  __shared__ unsigned values[kThreads];
  if (threadIdx.x == 0) {
    init(&all, kThreads);
    init(&half, kThreads / 2);
  }
  __syncthreads();
  unsigned own = threadIdx.x;
  for (int round = 0; round < 20; ++round) {
    values[threadIdx.x] = own;
    all.arrive_and_wait();
    own += values[(threadIdx.x + round + 1) % kThreads];
    auto token = all.arrive();
    own = own * 3 + 1;
    all.wait(std::move(token));
  }
  if (threadIdx.x % 2 == 0) {
    values[threadIdx.x] = own;
    half.arrive_and_wait();
    own += values[(threadIdx.x + 2) % kThreads];
  }
  out[blockIdx.x * kThreads + threadIdx.x] = own;
}

std::vector<unsigned> afterBarriers() {
  std::vector<unsigned> own(kThreads), result;
  for (int i = 0; i < kThreads; ++i) own[i] = i;
  for (int round = 0; round < 20; ++round) {
    const std::vector<unsigned> values = own;
    for (int i = 0; i < kThreads; ++i)
      own[i] = (values[i] + values[(i + round + 1) % kThreads]) * 3 + 1;
  }
  const std::vector<unsigned> values = own;
  for (int i = 0; i < kThreads; i += 2) own[i] += values[(i + 2) % kThreads];
  for (int block = 0; block < kBlocks; ++block) result.insert(result.end(), own.begin(), own.end());
  return result;
}

/// The last warp waits until all others have counted down.
__global__ void latches(unsigned* out) {
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(Latch) char memory[sizeof(Latch)];
  __shared__ unsigned sum;
  Latch& done = *reinterpret_cast<Latch*>(memory);
  if (threadIdx.x == 0) {
    new (memory) Latch(kThreads - 32);
    sum = 0;
  }
  __syncthreads();
  if (threadIdx.x < kThreads - 32) {
    atomicAdd(&sum, threadIdx.x);
    done.count_down();
  } else {
    done.wait();
    if (threadIdx.x == kThreads - 1) out[blockIdx.x] = sum;
  }
}

/// At most three blocks at a time between acquire and release.
__global__ void semaphores(cuda::counting_semaphore<cuda::thread_scope_device, 3>* free,
                           int* inside, int* most, int* total) {
  if (threadIdx.x != 0) return;
  free->acquire();
  const int now = atomicAdd(inside, 1) + 1;
  atomicMax(most, now);
  atomicAdd(total, 1);
  atomicSub(inside, 1);
  free->release();
}
__global__ void makeSemaphore(cuda::counting_semaphore<cuda::thread_scope_device, 3>* free) {
  new (free) cuda::counting_semaphore<cuda::thread_scope_device, 3>(3);
}

void semaphoreCase(Cases& cases) {
  using Semaphore = cuda::counting_semaphore<cuda::thread_scope_device, 3>;
  Device<Semaphore> free(1);
  Device<int> counts(3);
  cases.check("semaphores", std::vector<int>{0, 1, 64}, [&] {
    MUST(cudaMemset(counts.data(), 0, 3 * sizeof(int)));
    makeSemaphore<<<1, 1>>>(free.data());
    semaphores<<<64, 32>>>(free.data(), counts.data(), counts.data() + 1, counts.data() + 2);
    std::vector<int> seen = counts.read(3);
    seen[1] = seen[1] >= 1 && seen[1] <= 3;
    return seen;
  });
}

/// Two stages of asynchronous copies from global to shared memory.
__global__ void pipelines(const uint4* in, uint4* out, int tiles) {
  __shared__ uint4 stage[2][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  cuda::pipeline<cuda::thread_scope_block> pipe =
      cuda::make_pipeline(cooperative_groups::this_thread_block(), &state);
  const auto fetch = [&](int tile) {
    pipe.producer_acquire();
    cuda::memcpy_async(&stage[tile % 2][threadIdx.x],
                       &in[(blockIdx.x * tiles + tile) * kThreads + threadIdx.x],
                       cuda::aligned_size_t<16>(sizeof(uint4)), pipe);
    pipe.producer_commit();
  };
  fetch(0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) fetch(tile + 1);
    pipe.consumer_wait();
    uint4 value = stage[tile % 2][kThreads - 1 - threadIdx.x];
    value.x += value.w;
    out[(blockIdx.x * tiles + tile) * kThreads + threadIdx.x] = value;
    pipe.consumer_release();
  }
}

void pipelineCase(Cases& cases) {
  constexpr int kTiles = 16;
  constexpr std::size_t kCount = std::size_t{kBlocks} * kTiles * kThreads;
  std::vector<uint4> host(kCount), expected(kCount);
  Random random(1);
  for (uint4& value : host)
    value = {unsigned(random.next()), unsigned(random.next()), unsigned(random.next()),
             unsigned(random.next())};
  for (std::size_t i = 0; i < kCount; ++i) {
    expected[i] = host[i / kThreads * kThreads + kThreads - 1 - i % kThreads];
    expected[i].x += expected[i].w;
  }
  const Device<uint4> in(host);
  Device<uint4> out(kCount);
  cases.check("pipelines", expected, [&] {
    out.spoil();
    pipelines<<<kBlocks, kThreads>>>(in.data(), out.data(), kTiles);
    return out.read(kCount);
  });
}

int main(int count, char** arguments) {
  Cases cases(count, arguments);
  atomics<std::uint8_t>(cases, "atomics of 1 byte");
  atomics<std::uint16_t>(cases, "atomics of 2 bytes");
  atomics<std::uint32_t>(cases, "atomics of 4 bytes");
  atomics<std::uint64_t>(cases, "atomics of 8 bytes");
  wideAtomics(cases);
  relays(cases);
  Device<unsigned> out(kBlocks * kThreads);
  cases.check("barriers", afterBarriers(), [&] {
    out.spoil();
    barriers<<<kBlocks, kThreads>>>(out.data());
    return out.read(kBlocks * kThreads);
  });
  cases.check("latches", std::vector<unsigned>(kBlocks, (kThreads - 32) * (kThreads - 33) / 2),
              [&] {
                out.spoil();
                latches<<<kBlocks, kThreads>>>(out.data());
                return out.read(kBlocks);
              });
  semaphoreCase(cases);
  pipelineCase(cases);
  return cases.close();
}
