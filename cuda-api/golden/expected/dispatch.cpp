// Generated. Do not edit, change cuda-api/.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "call_numbers.h"
#include "driver.h"
#include "worker_bodies.h"

namespace worker {

namespace {

CUresult dispatch_cuToyOpen_v2(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto device = in.get<CUdevice>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuToyOpen_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUstream stream{};
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = thread.driver.cuToyOpen_v2(&stream, device); status != CUDA_SUCCESS) return status;
  out.put<std::uint64_t>(thread.add(wire::HandleKind::stream, stream));
  return CUDA_SUCCESS;
}

CUresult dispatch_cuToyClose(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto streamNumber = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUstream stream{};
  if (const CUresult status = thread.find<CUstream>(streamNumber, &stream); status != CUDA_SUCCESS) return status;
  thread.ends(stream);
  if (const CUresult status = worker::cuToyClose(thread, stream); status != CUDA_SUCCESS) return status;
  thread.session.handles.remove(streamNumber);
  return CUDA_SUCCESS;
}

CUresult dispatch_cuToyWait(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto streamNumber = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuToyWait == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUstream stream{};
  if (const CUresult status = thread.find<CUstream>(streamNumber, &stream); status != CUDA_SUCCESS) return status;
  thread.passTicket(stream);
  return thread.driver.cuToyWait(stream);
}

CUresult dispatch_cuToyMark(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto streamNumber = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuToyMark == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUstream stream{};
  if (const CUresult status = thread.find<CUstream>(streamNumber, &stream); status != CUDA_SUCCESS) return status;
  thread.awaitWindow(Window::marker, stream, 0, {static_cast<std::uint64_t>(CallNumber::cuToyMark)});
  return thread.driver.cuToyMark(stream);
}

CUresult dispatch_cuToyFill(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<unsigned long long>();
  auto box = in.get<CUtoyBox>();
  const auto deviceList = in.getArray<CUdevice>(wire::kMaxFrameBytes);
  const auto streamNumber = in.get<std::uint64_t>();
  if (deviceList.size() > 1) return thread.refuseFrame();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuToyFill == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUdevice* const devicePointer = deviceList.empty() ? nullptr : deviceList.data();
  CUstream stream{};
  if (const CUresult status = thread.find<CUstream>(streamNumber, &stream); status != CUDA_SUCCESS) return status;
  thread.awaitWindow(Window::always, stream, 0, {static_cast<std::uint64_t>(CallNumber::cuToyFill)});
  return thread.driver.cuToyFill(address, &box, devicePointer, stream);
}

CUresult dispatch_cuToyCopy(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  return worker::cuToyCopy(thread, in, out, Window::small);
}

CUresult dispatch_cuToyPaint(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<CUtoyAddress>();
  const auto bytes = in.get<size_t>();
  const auto streamNumber = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuToyPaint == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUstream stream{};
  if (const CUresult status = thread.find<CUstream>(streamNumber, &stream); status != CUDA_SUCCESS) return status;
  thread.awaitWindow(Window::small, stream, bytes, {static_cast<std::uint64_t>(CallNumber::cuToyPaint), bytes});
  return thread.driver.cuToyPaint(address, bytes, stream);
}

CUresult dispatch_cuToyPlay(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto moduleNumber = in.get<std::uint64_t>();
  const auto streamNumber = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuToyPlay == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUmodule module{};
  if (const CUresult status = thread.find<CUmodule>(moduleNumber, &module); status != CUDA_SUCCESS) return status;
  CUstream stream{};
  if (const CUresult status = thread.find<CUstream>(streamNumber, &stream); status != CUDA_SUCCESS) return status;
  thread.awaitWindow(Window::always, stream, 0, {static_cast<std::uint64_t>(CallNumber::cuToyPlay), moduleNumber});
  return thread.driver.cuToyPlay(module, stream);
}

CUresult dispatch_cuToyLoad(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const char* const name = in.getString(wire::kMaxFrameBytes);
  const auto image = reinterpret_cast<const void*>(in.get<std::uint64_t>());
  if (!in.finished()) return thread.refuseFrame();
  CUmodule module{};
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = worker::cuToyLoad(thread, &module, name, image); status != CUDA_SUCCESS) return status;
  out.put<std::uint64_t>(thread.add(wire::HandleKind::module, module));
  return CUDA_SUCCESS;
}

CUresult dispatch_cuToyPart(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto moduleNumber = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuToyPart == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUmemGenericAllocationHandle part{};
  size_t bytes{};
  CUmodule module{};
  if (const CUresult status = thread.find<CUmodule>(moduleNumber, &module); status != CUDA_SUCCESS) return status;
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = thread.driver.cuToyPart(&part, &bytes, module); status != CUDA_SUCCESS) return status;
  out.put<std::uint64_t>(thread.add(wire::HandleKind::genericAllocation, reinterpret_cast<void*>(part), moduleNumber));
  out.put(bytes);
  return CUDA_SUCCESS;
}

CUresult dispatch_cuToyGather(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto streamsNumbers = in.getArray<std::uint64_t>(wire::kMaxFrameBytes);
  const auto orders = in.getArray<CUtoyOrder>(wire::kMaxFrameBytes);
  const auto more = in.getArray<CUtoyOrder>(wire::kMaxFrameBytes);
  const auto count = in.get<unsigned int>();
  auto box = in.get<CUtoyBox>();
  if (streamsNumbers.size() != static_cast<std::size_t>(count)) return thread.refuseFrame();
  if (orders.size() != static_cast<std::size_t>(count)) return thread.refuseFrame();
  if (!more.empty() && more.size() != static_cast<std::size_t>(count)) return thread.refuseFrame();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuToyGather == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<CUstream> streams(streamsNumbers.size());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (const CUresult status = thread.find<CUstream>(streamsNumbers[i], &streams[i]); status != CUDA_SUCCESS) return status;
  }
  if (static_cast<std::size_t>(count) > wire::kReplyBytes / 8) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUmodule> modules(count);
  if (static_cast<std::size_t>(count) > wire::kReplyBytes / 2) return CUDA_ERROR_INVALID_VALUE;
  std::vector<unsigned short> sizes(count);
  if (thread.full()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = thread.driver.cuToyGather(streams.data(), orders.data(), more.empty() ? nullptr : more.data(), count, modules.data(), sizes.data(), &box); status != CUDA_SUCCESS) return status;
  out.put<std::uint64_t>(modules.size() * sizeof(std::uint64_t));
  for (const auto object : modules) out.put<std::uint64_t>(thread.add(wire::HandleKind::module, object));
  out.putBytes(sizes.data(), sizes.size() * sizeof(unsigned short));
  out.put(box);
  return CUDA_SUCCESS;
}

CUresult dispatch_cuToyAsk(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto device = in.get<CUdevice>();
  if (!in.finished()) return thread.refuseFrame();
  if (thread.driver.cuToyAsk == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  int answer{};
  if (const CUresult status = thread.driver.cuToyAsk(&answer, device); status != CUDA_SUCCESS) return status;
  out.put(answer);
  return CUDA_SUCCESS;
}

using Handler = CUresult (*)(Thread&, wire::Decoder&, wire::Encoder&);
constexpr Handler kHandlers[kCallCount + 1] = {
    nullptr,
    &dispatch_cuToyOpen_v2,
    &dispatch_cuToyClose,
    &dispatch_cuToyWait,
    &dispatch_cuToyMark,
    &dispatch_cuToyFill,
    &dispatch_cuToyCopy,
    &dispatch_cuToyPaint,
    &dispatch_cuToyPlay,
    &dispatch_cuToyLoad,
    &dispatch_cuToyPart,
    &dispatch_cuToyGather,
    &dispatch_cuToyAsk,
    &worker::toyStage,
};

}  // namespace

CUresult dispatch(Thread& thread, const wire::FrameHeader& header, wire::Decoder& in, wire::Encoder& out) {
  if (header.call == 0 || header.call > kCallCount) return thread.refuseFrame();
  return kHandlers[header.call](thread, in, out);
}

}  // namespace worker
