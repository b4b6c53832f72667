#include "native/simulator/attributes.h"

#include "native/simulator/device.h"

namespace simulator {
namespace {

// The value at index n is that of attribute n (the comment names what a run of numbers is about). Recorded from an H200; what the
// product does not offer yet reads 0, so that no program is promised it. Places that depend on the device are filled in below.
constexpr int kAttributes[] = {
    0,  // 0: names nothing
    kThreadsPerBlock,
    1024,
    1024,
    64,  // 1-4 block
    2147483647,
    65535,
    65535,  // 5-7 grid
    kSharedPerBlock,
    65536,
    kWarpSize,
    2147483647,  // 8-11 shared memory, constant memory, warp, pitch
    kRegistersPerBlock,
    1980000,
    512,
    1,  // 12-15 registers, clock, texture alignment, overlap
    kMultiprocessors,
    0,
    0,
    1,
    0,  // 16-20 multiprocessors, timeout, integrated, host memory, compute mode
    131072,
    131072,
    65536,
    16384,
    16384,
    16384,  // 21-26 textures 1D, 2D, 3D
    32768,
    32768,
    2048,
    512,
    1,
    1,  // 27-32 layered 2D, surface alignment, concurrent kernels, ECC
    0,
    0,
    0,  // 33-35 PCI bus, device, TCC
    3201000,
    6144,
    62914560,
    kThreadsPerMultiprocessor,  // 36-39 memory clock, bus width, L2, threads
    3,
    1,
    32768,
    2048,
    1,  // 40-44 copy engines, unified addressing, layered 1D, gather
    32768,
    32768,
    8192,
    8192,
    32768,  // 45-49 gather, alternate 3D
    0,
    32,
    32768,
    32768,
    2046,  // 50-54 PCI domain, pitch alignment, cubemaps
    32768,
    131072,
    65536,
    16384,
    16384,
    16384,  // 55-60 surfaces 1D, 2D, 3D
    32768,
    2048,
    32768,
    32768,
    2048,
    32768,
    32768,
    2046,  // 61-68 surfaces layered, cubemaps
    268435456,
    131072,
    65000,
    2097120,
    32768,
    32768,  // 69-74 linear and mipmapped textures
    9,
    0,
    32768,
    1,
    1,
    1,  // 75-80 compute capability, 1D mipmap, priorities, L1 caches
    kSharedPerMultiprocessor,
    kRegistersPerMultiprocessor,
    1,
    0,
    0,
    0,  // 81-86 managed memory, board, host atomics
    2,
    0,
    0,
    1,
    1,  // 87-91 double ratio, pageable, concurrent managed, preemption, registered pointers
    0,
    0,
    0,
    1,
    0,  // 92-96 stream memory operations, cooperative launch, several devices
    kSharedPerBlockOptin,
    0,
    1,
    0,
    0,  // 97-101 opt-in shared, remote writes, host register, page tables, direct access
    1,
    0,
    0,
    0,  // 102-105 virtual memory, its shareable handles
    kBlocksPerMultiprocessor,
    0,
    39321600,
    134213632,
    0,  // 106-110 blocks, compression, persisting L2, access window, RDMA
    kReservedSharedPerBlock,
    0,
    0,
    0,
    1,  // 111-115 reserved shared, sparse arrays, read-only registration, semaphores, pools
    0,
    0,
    0,
    0,
    1,  // 116-120 RDMA, its flushes and order, pool handles, clusters
    0,
    0,
    0,
    0,
    0,  // 121-125 deferred arrays, stream memory operations, DMA-BUF, IPC events
    4,
    0,
    0,
    0,
    0,  // 126-130 sync domains, tensor maps, fabric, unified functions, NUMA
    -1,
    0,
    0,
    -1,
    0,  // 131-135 NUMA id, multicast, MPS, host NUMA id, D3D12
    0,
    0,
    0,
    590025950,
    402919134,  // 136-140 decompression, Vulkan, PCI ids
    0,
    0,
    0,
    0,
    0,  // 141-145 host NUMA, host pools
    0,
    0,  // 146-147 host DMA-BUF, partial atomics
};
constexpr int kAttributeCount = sizeof(kAttributes) / sizeof(kAttributes[0]);
static_assert(kAttributeCount == CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED + 1);

}  // namespace

bool deviceAttribute(const Device& device, int attribute, int& value) {
  if (attribute < 1 || attribute >= kAttributeCount) return false;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      value = 0x17 + device.index;
      break;
    default:
      value = kAttributes[attribute];
  }
  return true;
}

}  // namespace simulator
