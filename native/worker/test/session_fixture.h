// A session whose client is the test: it passes frames to the generated dispatch, as threads of the
// worker do.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "call_numbers.h"
#include "native/worker/session/thread.h"
#include "native/worker/test/quota_file.h"
#include "test/unit/program.h"
#include "worker_bodies.h"

namespace worker::test {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// PTX text of a kernel `k`.
inline const std::string kEmptyKernel =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";

struct Reply {
  CUresult status = CUDA_SUCCESS;
  std::uint64_t handle = 0;  ///< the first word behind the status
  std::uint64_t second = 0, third = 0, fourth = 0;
};

/// Calls dispatch() as one thread of the worker does, without a ring.
class Frames {
 public:
  explicit Frames(Session& session) : thread(session, nullptr) {}

  template <class... T>
  Reply call(CallNumber number, T... arguments) {
    return send(number, [&](wire::Encoder& frame) { (frame.put(arguments), ...); });
  }

  template <class Encode>
  Reply send(CallNumber number, Encode encode) {
    wire::Encoder frame(request_.data(), request_.size());
    encode(frame);
    wire::Encoder reply(answer_.data(), answer_.size());
    wire::Decoder in(request_.data(), frame.size());
    wire::FrameHeader header{};
    header.call = static_cast<std::uint16_t>(number);
    const CUresult status = dispatch(thread, header, in, reply);
    wire::Decoder words(answer_.data(), reply.size());
    Reply read{status};
    for (std::uint64_t* word : {&read.handle, &read.second, &read.third, &read.fourth})
      *word = words.get<std::uint64_t>();
    return read;
  }

  Thread thread;

 private:
  std::vector<std::byte> request_ = std::vector<std::byte>(wire::kMaxFrameBytes);
  std::vector<std::byte> answer_ = std::vector<std::byte>(wire::kReplyBytes);
};

/// A session on the simulated driver that the program's argument names, with a quota of so many
/// bytes and one context, which it destroys at the end. `exact`: its memory is of the driver's
/// cuMemAlloc.
struct SimulatedSession {
  Report report{-1};
  Quota quota;
  Figures figures;
  Output output;
  Session session{-1, report, quota, figures, output, {}};
  Frames frames{session};
  std::uint64_t context = 0;

  explicit SimulatedSession(std::uint64_t limit, bool exact = false) {
    const std::string path = makeQuotaFile(limit);
    REQUIRE(quota.open(path, 0, limit).empty());
    unlink(path.c_str());
    const char* driver = unit::argument(0, "the path of the simulated driver");
    REQUIRE(load(dlopen(driver, RTLD_NOW | RTLD_LOCAL), session.driver));
    REQUIRE(session.driver.cuInit(0) == CUDA_SUCCESS);
    session.memory.install(session.driver, exact);
    const Reply made = frames.call(CallNumber::cuCtxCreate_v4, 0u, CUdevice{0});
    REQUIRE(made.status == CUDA_SUCCESS);
    context = made.handle;
  }
  ~SimulatedSession() {
    CHECK(frames.call(CallNumber::cuCtxDestroy_v2, context).status == CUDA_SUCCESS);
  }
};

/// A memory file as a client sends it.
inline int memoryFile(std::string_view content, std::uint64_t bytes, int seals) {
  const int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
  if (!content.empty() &&
      write(file, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    std::abort();
  if (fcntl(file, F_ADD_SEALS, seals) != 0) std::abort();
  return file;
}

/// The frame of cuModuleLoadDataEx and cuLibraryLoadData: PTX text, without options.
template <class Client>
Reply load(Client& client, Session& session, CallNumber number, std::uint64_t id,
           const std::string& text) {
  const std::uint64_t bytes = text.size() + 1;
  session.shared.put(
      id, memoryFile(text, (bytes + 7) / 8 * 8, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
  return client.send(number, [&](wire::Encoder& frame) {
    frame.put(id);
    frame.put<std::uint64_t>(1);
    frame.put(bytes);
    frame.put<std::uint64_t>(0);  // options
  });
}

/// The frame of cuGraphAddNode_v2 for a node without dependencies, edges and pointers.
template <class Client>
Reply addNode(Client& client, std::uint64_t graph, const CUgraphNodeParams& params) {
  return client.send(CallNumber::cuGraphAddNode_v2, [&](wire::Encoder& frame) {
    frame.put(graph);
    frame.put<std::uint64_t>(0);
    frame.put<std::uint64_t>(0);
    frame.put(params);
    frame.put<std::uint64_t>(0);
  });
}

inline CUmemPoolProps devicePool() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return properties;
}

inline CUmemAllocationProp deviceMemory() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return properties;
}

inline CUgraphNodeParams memoryNode(std::size_t bytes) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params.alloc.poolProps = devicePool();
  params.alloc.bytesize = bytes;
  return params;
}

}  // namespace worker::test
