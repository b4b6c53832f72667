// Frames of a hostile client about arrays and copies of blocks, with the simulated driver.
#include <dlfcn.h>

#include <memory>

#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"

namespace {

using worker::test::kMiB;

constexpr std::uint64_t kLimit = 256 * kMiB;
constexpr std::uint64_t kSharedBytes = 64 << 10;

CUDA_ARRAY3D_DESCRIPTOR image(std::size_t width, std::size_t height, std::size_t depth = 0,
                              unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 4, flags};
}

/// A session with a context, and a piece of memory that it shares with its client.
struct Fixture {
  worker::Report report{-1};
  worker::Quota quota;
  worker::Figures figures;
  worker::Output output;
  std::unique_ptr<worker::Session> session;
  std::unique_ptr<worker::test::Frames> frames;
  std::uint64_t context = 0;
  std::uint64_t shared = 0;

  Fixture() {
    const std::string path = worker::test::makeQuotaFile(kLimit);
    CHECK(quota.open(path, 0, kLimit).empty());
    unlink(path.c_str());
    session =
        std::make_unique<worker::Session>(-1, report, quota, figures, output, worker::Limits{});
    const char* driver = unit::argument(0, "the path of the simulated driver");
    REQUIRE(worker::load(dlopen(driver, RTLD_NOW | RTLD_LOCAL), session->driver));
    REQUIRE(session->driver.cuInit(0) == CUDA_SUCCESS);
    session->memory.install(session->driver, false);
    frames = std::make_unique<worker::test::Frames>(*session);
    context = give(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
    shared = reinterpret_cast<std::uint64_t>(
        mmap(nullptr, kSharedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    session->shared.window = {shared, shared + kSharedBytes};
    session->shared.put(1, worker::test::memoryFile("", kSharedBytes, F_SEAL_SHRINK));
    give(CallNumber::cuMemHostAlloc, std::uint64_t{1}, shared, kSharedBytes, 0u);
  }
  ~Fixture() {
    frames->call(CallNumber::cuMemFreeHost, shared);
    CHECK(frames->call(CallNumber::cuCtxDestroy_v2, context).status == CUDA_SUCCESS);
    CHECK(quota.used() == 0);
    munmap(reinterpret_cast<void*>(shared), kSharedBytes);
  }

  template <class... T>
  CUresult call(CallNumber number, T... arguments) {
    return frames->call(number, arguments...).status;
  }
  template <class... T>
  std::uint64_t give(CallNumber number, T... arguments) {
    const worker::test::Reply reply = frames->call(number, arguments...);
    CHECK(reply.status == CUDA_SUCCESS);
    return reply.handle;
  }
  CUresult copy(const CUDA_MEMCPY3D& block) {
    return call(CallNumber::cuMemcpy3DAsync_v2, block, std::uint64_t{0}, 1u);
  }

  /// From an array to the shared memory, rows of 64 bytes.
  CUDA_MEMCPY3D download(std::uint64_t array) const {
    CUDA_MEMCPY3D block{};
    block.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    block.srcArray = reinterpret_cast<CUarray>(array);
    block.dstMemoryType = CU_MEMORYTYPE_HOST;
    block.dstHost = reinterpret_cast<void*>(shared);
    block.WidthInBytes = block.dstPitch = 64;
    block.Height = block.dstHeight = 4;
    block.Depth = 1;
    return block;
  }
};

/// Registers a page of the client's as read-only, at its address.
std::uint64_t registerReadOnly(Fixture& test) {
  void* const free = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<std::uint64_t>(free);
  munmap(free, 4096);  // the worker maps the page only where nothing is
  const int writable = worker::test::memoryFile("", 4096, F_SEAL_SHRINK);
  const std::string path = "/proc/self/fd/" + std::to_string(writable);
  test.session->shared.put(2, open(path.c_str(), O_RDONLY | O_CLOEXEC));
  close(writable);
  const worker::SharedMemory::Piece piece{2, address, 4096, 0};
  const auto encode = [&](wire::Encoder& frame) {
    frame.put(address);
    frame.put<std::uint64_t>(4096);
    frame.put<unsigned>(CU_MEMHOSTREGISTER_READ_ONLY);
    frame.putBytes(&piece, sizeof piece);
  };
  CHECK(test.frames->send(CallNumber::cuMemHostRegister_v2, encode).status == CUDA_SUCCESS);
  return address;
}

TEST_CASE("no copy writes memory that is registered as read-only") {
  Fixture test;
  const std::uint64_t array = test.give(CallNumber::cuArray3DCreate_v2, image(16, 16));
  const std::uint64_t graph = test.give(CallNumber::cuGraphCreate, 0u);
  const std::uint64_t page = registerReadOnly(test);
  CHECK(test.copy(test.download(array)) == CUDA_SUCCESS);
  CUgraphNodeParams node{};
  node.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  for (const auto kind : {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED}) {
    CUDA_MEMCPY3D block = test.download(array);
    block.dstMemoryType = kind;
    block.dstHost = reinterpret_cast<void*>(page);
    block.dstDevice = page;
    CHECK(test.copy(block) == CUDA_ERROR_INVALID_VALUE);
    node.memcpy.copyParams = block;
    CHECK(worker::test::addNode(*test.frames, graph, node).status == CUDA_ERROR_INVALID_VALUE);
    std::swap(block.srcArray, block.dstArray);
    std::swap(block.srcMemoryType, block.dstMemoryType);
    block.srcHost = block.dstHost;
    block.srcDevice = block.dstDevice;
    block.srcPitch = 64;
    CHECK(test.copy(block) == CUDA_SUCCESS);  // but copies read it
  }
  CHECK(test.call(CallNumber::cuGraphDestroy, graph) == CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuMemHostUnregister, page) == CUDA_SUCCESS);
}

TEST_CASE("an array is charged until it or its context ends") {
  Fixture test;
  const std::uint64_t array = test.give(CallNumber::cuArray3DCreate_v2, image(1024, 1024));
  CHECK(test.quota.used() == 16 * kMiB);
  CHECK(test.call(CallNumber::cuArrayDestroy, array) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 0);
  CHECK(test.call(CallNumber::cuArrayDestroy, array) == CUDA_ERROR_INVALID_HANDLE);
  test.give(CallNumber::cuArray3DCreate_v2, image(1024, 1024, 15));
  CHECK(test.quota.used() == 256 * kMiB);
  CHECK(test.call(CallNumber::cuArray3DCreate_v2, image(1, 1)) == CUDA_ERROR_OUT_OF_MEMORY);
  const std::uint64_t other = test.give(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
  CHECK(test.call(CallNumber::cuCtxDestroy_v2, test.context) == CUDA_SUCCESS);
  CHECK(test.quota.used() == 0);
  test.context = other;
}

TEST_CASE("no descriptor takes memory without a charge") {
  Fixture test;
  constexpr std::size_t kMost = ~std::size_t{0};
  for (const auto& descriptor :
       {image(kMost, kMost, kMost), image(std::size_t{1} << 33, std::size_t{1} << 31),
        image(std::size_t{1} << 31, std::size_t{1} << 31, std::size_t{1} << 31), image(0, kMost),
        image(0, 0), image(16384, 16384, 0, ~0u)}) {
    CHECK(test.call(CallNumber::cuArray3DCreate_v2, descriptor) != CUDA_SUCCESS);
    CHECK(test.call(CallNumber::cuMipmappedArrayCreate, descriptor, ~0u) != CUDA_SUCCESS);
    CHECK(test.quota.used() == 0);
  }
  CUDA_ARRAY3D_DESCRIPTOR strange = image(64, 64);
  strange.Format = static_cast<CUarray_format>(-1);
  strange.NumChannels = ~0u;
  CHECK(test.call(CallNumber::cuArray3DCreate_v2, strange) != CUDA_SUCCESS);
  CHECK(test.quota.used() == 0);
}

TEST_CASE("a level of a mipmapped array ends with it, and cannot be destroyed") {
  Fixture test;
  const std::uint64_t mipmap = test.give(CallNumber::cuMipmappedArrayCreate, image(64, 64), 3u);
  const std::uint64_t charged = test.quota.used();
  const std::uint64_t level = test.give(CallNumber::cuMipmappedArrayGetLevel, mipmap, 1u);
  CHECK(test.call(CallNumber::cuArrayDestroy, level) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(test.call(CallNumber::cuArrayDestroy, mipmap) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(test.quota.used() == charged);
  CHECK(test.copy(test.download(level)) == CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuMipmappedArrayDestroy, mipmap) == CUDA_SUCCESS);
  CHECK(test.copy(test.download(level)) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a copy reaches memory of the host only where it is shared with the client") {
  Fixture test;
  const std::uint64_t array = test.give(CallNumber::cuArray3DCreate_v2, image(16, 16));
  CUDA_MEMCPY3D block = test.download(array);
  const auto from = [&](std::uint64_t offset) {
    block.dstHost = reinterpret_cast<void*>(test.shared + offset);
    return test.copy(block);
  };
  CHECK(from(0) == CUDA_SUCCESS);
  CHECK(from(kSharedBytes - 4 * 64) == CUDA_SUCCESS);
  CHECK(from(kSharedBytes - 4 * 64 + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(from(~std::uint64_t{0}) == CUDA_ERROR_INVALID_VALUE);
  // Distances of rows that the driver would have to guess are those of the copy.
  block.dstPitch = block.dstHeight = 0;
  block.dstXInBytes = 8;
  CHECK(from(kSharedBytes - 4 * 72) == CUDA_SUCCESS);
  CHECK(from(kSharedBytes - 4 * 72 + 1) == CUDA_ERROR_INVALID_VALUE);
  block = test.download(array);
  block.dstPitch = 1;
  CHECK(from(kSharedBytes - 4 * 64 + 1) == CUDA_ERROR_INVALID_VALUE);
  for (std::size_t CUDA_MEMCPY3D::*field :
       {&CUDA_MEMCPY3D::dstPitch, &CUDA_MEMCPY3D::dstY, &CUDA_MEMCPY3D::dstZ,
        &CUDA_MEMCPY3D::dstXInBytes, &CUDA_MEMCPY3D::WidthInBytes, &CUDA_MEMCPY3D::Height,
        &CUDA_MEMCPY3D::Depth}) {
    for (const std::size_t value :
         {std::size_t{kSharedBytes}, std::size_t{1} << 40, std::size_t{1} << 63, ~std::size_t{0}}) {
      block = test.download(array);
      block.dstHeight = 16;
      block.*field = value;
      CHECK(from(0) == CUDA_ERROR_INVALID_VALUE);
    }
  }
}

TEST_CASE("memory of the worker is no end of a copy, whatever type it is said to be") {
  Fixture test;
  const std::uint64_t array = test.give(CallNumber::cuArray3DCreate_v2, image(16, 16));
  unsigned char secret[4 * 64] = {1};
  CUDA_MEMCPY3D block = test.download(array);
  for (const int type : {1, 2, 4, 0, 5, -1}) {
    block.dstMemoryType = static_cast<CUmemorytype>(type);
    block.dstHost = secret;
    block.dstDevice = reinterpret_cast<CUdeviceptr>(secret);
    CHECK(test.copy(block) == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(secret[0] == 1);
  block.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  block.dstDevice = test.shared;
  CHECK(test.copy(block) == CUDA_SUCCESS);
}

TEST_CASE("a copy takes handles of arrays and contexts only") {
  Fixture test;
  const std::uint64_t array = test.give(CallNumber::cuArray3DCreate_v2, image(16, 16));
  const std::uint64_t event = test.give(CallNumber::cuEventCreate, 0u);
  const CUDA_MEMCPY3D block = test.download(array);
  for (const std::uint64_t wrong : {std::uint64_t{0}, event, test.context, array + 16, test.shared})
    CHECK(test.copy(test.download(wrong)) == CUDA_ERROR_INVALID_HANDLE);
  CUDA_MEMCPY3D_PEER peer{};
  std::memcpy(&peer, &block, sizeof peer);
  const auto copy = [&] {
    return test.call(CallNumber::cuMemcpy3DPeerAsync, peer, std::uint64_t{0}, 1u);
  };
  peer.srcContext = peer.dstContext = reinterpret_cast<CUcontext>(test.context);
  CHECK(copy() == CUDA_SUCCESS);
  peer.dstContext = reinterpret_cast<CUcontext>(event);
  CHECK(copy() == CUDA_ERROR_INVALID_CONTEXT);
  peer.dstContext = reinterpret_cast<CUcontext>(peer.srcContext);
  peer.dstHost = &peer;
  CHECK(copy() == CUDA_ERROR_INVALID_VALUE);
}

CUarrayMapInfo mapping(std::uint64_t array, std::uint64_t memory) {
  CUarrayMapInfo info{};
  info.resourceType = CU_RESOURCE_TYPE_ARRAY;
  info.resource.array = reinterpret_cast<CUarray>(array);
  info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
  info.memHandle.memHandle = memory;
  return info;
}

CUresult map(Fixture& test, const CUarrayMapInfo& info) {
  test.session->driver.cuMemMapArrayAsync = [](CUarrayMapInfo*, unsigned, CUstream) {
    return CUDA_SUCCESS;
  };
  return test.frames
      ->send(CallNumber::cuMemMapArrayAsync,
             [&](wire::Encoder& frame) {
               frame.put<std::uint64_t>(0);
               frame.putBytes(&info, sizeof info);
             })
      .status;
}

TEST_CASE("memory that is mapped into an array is charged until both have ended") {
  Fixture test;
  const std::uint64_t memory =
      test.give(CallNumber::cuMemCreate, std::size_t{8 * kMiB}, worker::test::deviceMemory(), 0ull);
  const std::uint64_t before = test.quota.used();
  const std::uint64_t array = test.give(CallNumber::cuArray3DCreate_v2, image(16, 16));
  CHECK(map(test, mapping(array, memory)) == CUDA_SUCCESS);
  // The array ends with its own context, whichever is current when memory is mapped.
  const std::uint64_t other = test.give(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
  CHECK(map(test, mapping(array, memory)) == CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuMemRelease, memory) == CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuCtxDestroy_v2, other) == CUDA_SUCCESS);
  test.give(CallNumber::cuCtxSetCurrent, test.context);
  CHECK(test.quota.used() > before);
  CHECK(test.call(CallNumber::cuArrayDestroy, array) == CUDA_SUCCESS);
  CHECK(test.quota.used() == before - 8 * kMiB);
}

TEST_CASE("memory is mapped into arrays only, and only memory of the program") {
  Fixture test;
  const std::uint64_t memory =
      test.give(CallNumber::cuMemCreate, std::size_t{2 * kMiB}, worker::test::deviceMemory(), 0ull);
  const std::uint64_t mipmap = test.give(CallNumber::cuMipmappedArrayCreate, image(64, 64), 3u);
  const std::uint64_t level = test.give(CallNumber::cuMipmappedArrayGetLevel, mipmap, 1u);
  CUarrayMapInfo info = mapping(mipmap, memory);
  CHECK(map(test, info) == CUDA_ERROR_INVALID_HANDLE);
  info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  CHECK(map(test, info) == CUDA_SUCCESS);
  info.memHandle.memHandle = level;
  CHECK(map(test, info) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(map(test, mapping(level, memory)) == CUDA_ERROR_INVALID_VALUE);
  for (const int wrong : {0, 3, -1}) {
    info = mapping(level, memory);
    info.memOperationType = static_cast<CUmemOperationType>(wrong);
    CHECK(map(test, info) == CUDA_ERROR_INVALID_VALUE);
    info.resourceType = static_cast<CUresourcetype>(wrong == 0 ? 2 : wrong);
    CHECK(map(test, info) == CUDA_ERROR_INVALID_VALUE);
  }
  info = mapping(mipmap, memory);
  info.memHandleType = static_cast<CUmemHandleType>(1);
  CHECK(map(test, info) == CUDA_ERROR_INVALID_VALUE);
  CHECK(test.call(CallNumber::cuMemRelease, memory) == CUDA_SUCCESS);
}

/// The frame of cuTexObjectCreate for an array, without a view.
worker::test::Reply makeTexture(Fixture& test, CUDA_RESOURCE_DESC resource) {
  CUDA_TEXTURE_DESC texture{};
  return test.frames->send(CallNumber::cuTexObjectCreate, [&](wire::Encoder& frame) {
    frame.put(resource);
    frame.put(texture);
    frame.putBytes(nullptr, 0);
  });
}

CUDA_RESOURCE_DESC resourceOf(std::uint64_t array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = reinterpret_cast<CUarray>(array);
  return resource;
}

TEST_CASE("a texture object is the driver's own value, and only of its context and kind") {
  Fixture test;
  const std::uint64_t array =
      test.give(CallNumber::cuArray3DCreate_v2, image(16, 16, 0, CUDA_ARRAY3D_SURFACE_LDST));
  const std::size_t handles = test.session->handles.size();
  const worker::test::Reply texture = makeTexture(test, resourceOf(array));
  CHECK(texture.status == CUDA_SUCCESS);
  const std::uint64_t surface = test.give(CallNumber::cuSurfObjectCreate, resourceOf(array));
  CHECK(test.session->handles.size() == handles + 2);
  CHECK(wire::handleKind(texture.handle) == wire::HandleKind::none);
  CHECK(test.call(CallNumber::cuTexObjectGetResourceDesc, texture.handle) == CUDA_SUCCESS);
  for (const std::uint64_t wrong :
       {std::uint64_t{0}, texture.handle + 1000, array, ~std::uint64_t{0}}) {
    CHECK(test.call(CallNumber::cuTexObjectGetResourceDesc, wrong) == CUDA_ERROR_INVALID_VALUE);
    CHECK(test.call(CallNumber::cuTexObjectGetTextureDesc, wrong) == CUDA_ERROR_INVALID_VALUE);
    CHECK(test.call(CallNumber::cuTexObjectGetResourceViewDesc, wrong) == CUDA_ERROR_INVALID_VALUE);
    CHECK(test.call(CallNumber::cuTexObjectDestroy, wrong) == CUDA_SUCCESS);
    CHECK(test.call(CallNumber::cuSurfObjectDestroy, wrong) == CUDA_ERROR_INVALID_VALUE);
  }
  const std::uint64_t other = test.give(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
  CHECK(test.call(CallNumber::cuTexObjectDestroy, texture.handle) == CUDA_SUCCESS);  // of none
  CHECK(test.session->handles.size() == handles + 3);
  CHECK(test.call(CallNumber::cuCtxDestroy_v2, other) == CUDA_SUCCESS);
  test.give(CallNumber::cuCtxSetCurrent, test.context);
  CHECK(test.call(CallNumber::cuTexObjectDestroy, texture.handle) == CUDA_SUCCESS);
  CHECK(test.session->handles.size() == handles + 1);
  CHECK(test.call(CallNumber::cuTexObjectDestroy, texture.handle) == CUDA_SUCCESS);
  CHECK(test.call(CallNumber::cuSurfObjectDestroy, surface) == CUDA_SUCCESS);
  CHECK(test.session->handles.size() == handles);
}

TEST_CASE("a texture is made of arrays of the program only") {
  Fixture test;
  const std::uint64_t array = test.give(CallNumber::cuArray3DCreate_v2, image(16, 16));
  const std::uint64_t event = test.give(CallNumber::cuEventCreate, 0u);
  for (const std::uint64_t wrong : {std::uint64_t{0}, event, test.context, array + 16})
    CHECK(makeTexture(test, resourceOf(wrong)).status == CUDA_ERROR_INVALID_HANDLE);
  CUDA_RESOURCE_DESC resource = resourceOf(array);
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  CHECK(makeTexture(test, resource).status == CUDA_ERROR_INVALID_HANDLE);
  for (const int type : {4, 100, -1}) {
    resource.resType = static_cast<CUresourcetype>(type);
    CHECK(makeTexture(test, resource).status == CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace
