#include <array>
#include <cstring>

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

using Value = std::array<std::byte, 64>;

CUresult ask(Thread& thread, std::byte filler, CUpointer_attribute attribute, CUdeviceptr address,
             Value& value) {
  value.fill(filler);
  return thread.driver.cuPointerGetAttribute(value.data(), attribute, address);
}

/// Bytes that the driver wrote: those that differ from a filler in either query. So no table of
/// attribute sizes is needed, not even for future attributes.
std::size_t written(const Value& first, const Value& second, std::byte firstFiller,
                    std::byte secondFiller) {
  std::size_t bytes = first.size();
  while (bytes > 0 && first[bytes - 1] == firstFiller && second[bytes - 1] == secondFiller) --bytes;
  return bytes;
}

template <class T>
void translate(Thread& thread, wire::HandleKind kind, Value& value) {
  T object{};
  std::memcpy(&object, value.data(), sizeof object);
  const std::uint64_t handle = object != nullptr ? thread.add(kind, object) : 0;
  std::memcpy(value.data(), &handle, sizeof handle);
}

}  // namespace

CUresult cuPointerGetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto attribute = in.get<CUpointer_attribute>();
  const auto address = in.get<CUdeviceptr>();
  if (!in.finished()) return thread.refuseFrame();
  constexpr std::byte kFillers[] = {std::byte{0x55}, std::byte{0xaa}};
  Value value;
  Value other;
  if (const CUresult status = ask(thread, kFillers[1], attribute, address, other);
      status != CUDA_SUCCESS)
    return status;
  if (const CUresult status = ask(thread, kFillers[0], attribute, address, value);
      status != CUDA_SUCCESS)
    return status;
  const std::size_t bytes = written(value, other, kFillers[0], kFillers[1]);
  if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT)
    translate<CUcontext>(thread, wire::HandleKind::context, value);
  if (attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE)
    translate<CUmemoryPool>(thread, wire::HandleKind::memoryPool, value);
  out.putBytes(value.data(), bytes);
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto attribute = in.get<CUpointer_attribute>();
  const auto address = in.get<CUdeviceptr>();
  const auto value = in.get<unsigned>();
  if (!in.finished()) return thread.refuseFrame();
  return thread.driver.cuPointerSetAttribute(&value, attribute, address);
}

}  // namespace worker
