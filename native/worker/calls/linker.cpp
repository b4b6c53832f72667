// Links code images. The driver sees vetted copies only. What it makes is read by the client, and
// vetted and charged when the client loads it.
#include <algorithm>
#include <memory>

#include "native/fatbin/container.h"
#include "native/worker/calls/image.h"
#include "native/worker/reports/log.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Maximum bytes of the inputs of all links of a session: the driver keeps a copy of each.
constexpr std::uint64_t kMostInput = std::uint64_t{1} << 30;
/// Bytes of linked code in one reply.
constexpr std::size_t kChunk = std::size_t{64} << 10;

/// One cuLinkCreate. The driver writes to the log buffers until cuLinkDestroy.
struct Link {
  CUlinkState state = nullptr;
  JitOptions options;
  std::uint64_t inputBytes = 0;
  const std::byte* code = nullptr;  ///< belongs to the driver's state
  std::size_t codeBytes = 0;
};

CUresult find(const Thread& thread, std::uint64_t handle, Link*& link) {
  link = static_cast<Link*>(thread.session.handles.find(wire::HandleKind::linkState, handle));
  return link != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// One input as the client sent it.
struct Input {
  CUjitInputType type{};
  std::span<const std::byte> bytes;
  const char* name = nullptr;
  JitOptions options;
};

CUresult addVetted(const Thread& thread, Link& link, Input& input, CUjitInputType type,
                   std::span<const std::byte> bytes) {
  const VettedImage image({{bytes}});
  if (image.status() != CUDA_SUCCESS) {
    link.options.setErrors(image.sentence());
    log("an input of a link is refused: %s", image.sentence().c_str());
    return image.status();
  }
  const auto content = image.content();
  return thread.driver.cuLinkAddData_v2(link.state, type, const_cast<std::byte*>(content.data()),
                                        content.size(), input.name, input.options.count(),
                                        input.options.options(), input.options.values());
}

/// Adds the fat binaries of an object file or an archive. The driver does not see the rest of the
/// file.
CUresult addContained(const Thread& thread, Link& link, Input& input) {
  CUresult status = CUDA_SUCCESS;
  const auto add = [&](std::span<const std::byte> fatbin) {
    if (status == CUDA_SUCCESS)
      status = addVetted(thread, link, input, CU_JIT_INPUT_FATBINARY, fatbin);
  };
  return fatbin::eachFatbin(input.bytes, add) ? status : CUDA_ERROR_INVALID_IMAGE;
}

CUresult add(const Thread& thread, Link& link, Input& input) {
  switch (input.type) {
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_PTX:
    case CU_JIT_INPUT_FATBINARY: return addVetted(thread, link, input, input.type, input.bytes);
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY: return addContained(thread, link, input);
    default: return CUDA_ERROR_INVALID_VALUE;  // CU_JIT_INPUT_NVVM needs a toolkit before CUDA 12
  }
}

/// Reserves room for an input; given back with the link.
bool fits(const Thread& thread, Link& link, std::uint64_t bytes) {
  auto& all = thread.session.linkInputBytes;
  if (bytes > kMostInput || all.fetch_add(bytes) + bytes > kMostInput)
    return all.fetch_sub(bytes), false;
  link.inputBytes += bytes;
  return true;
}

}  // namespace

CUresult cuLinkCreate_v2(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  auto link = std::make_unique<Link>();
  if (!link->options.decode(in) || !in.finished()) return thread.refuseFrame();
  if (thread.driver.cuLinkCreate_v2 == nullptr || !link->options.supported())
    return CUDA_ERROR_NOT_SUPPORTED;
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = thread.driver.cuLinkCreate_v2(
          link->options.count(), link->options.options(), link->options.values(), &link->state);
      status != CUDA_SUCCESS)
    return status;
  out.put(thread.session.handles.add(wire::HandleKind::linkState, link.release(), 0, 0));
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  Input input;
  const auto handle = in.get<std::uint64_t>();
  input.type = in.get<CUjitInputType>();
  const auto id = in.get<std::uint64_t>();
  const auto bytes = in.get<std::uint64_t>();
  input.name = in.getString(wire::kNameBytes);
  if (!input.options.decode(in, JitOptions::Logs::none) || !in.finished())
    return thread.refuseFrame();
  const SealedBytes memory = thread.session.shared.takeSealed(id);
  Link* link = nullptr;
  if (const CUresult status = find(thread, handle, link); status != CUDA_SUCCESS) return status;
  if (bytes == 0 || bytes > memory.content().size()) return CUDA_ERROR_INVALID_VALUE;
  if (!input.options.supported()) return CUDA_ERROR_NOT_SUPPORTED;
  if (!fits(thread, *link, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  input.bytes = memory.content().first(bytes);
  const CUresult status = add(thread, *link, input);
  link->options.encodeLogs(out);
  return status;
}

CUresult cuLinkComplete(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  Link* link = nullptr;
  if (const CUresult status = find(thread, handle, link); status != CUDA_SUCCESS) return status;
  link->code = nullptr;  // the driver may free what it made before
  void* code = nullptr;
  std::size_t bytes = 0;
  const CUresult status = thread.driver.cuLinkComplete(link->state, &code, &bytes);
  if (status == CUDA_SUCCESS) {
    link->code = static_cast<const std::byte*>(code);
    link->codeBytes = bytes;
  }
  out.put<std::uint64_t>(status == CUDA_SUCCESS ? bytes : 0);
  link->options.encodeLogs(out);
  return status;
}

CUresult readLinkedCode(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  const auto offset = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  Link* link = nullptr;
  if (const CUresult status = find(thread, handle, link); status != CUDA_SUCCESS) return status;
  if (link->code == nullptr || offset > link->codeBytes) return CUDA_ERROR_INVALID_VALUE;
  out.putBytes(link->code + offset, std::min<std::size_t>(kChunk, link->codeBytes - offset));
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  Link* link = nullptr;
  if (const CUresult status = find(thread, handle, link); status != CUDA_SUCCESS) return status;
  thread.session.handles.remove(handle);
  const CUresult status = thread.driver.cuLinkDestroy(link->state);
  thread.session.linkInputBytes -= link->inputBytes;
  if (status == CUDA_SUCCESS) delete link;  // else the driver may still write its logs
  return status;
}

}  // namespace worker
