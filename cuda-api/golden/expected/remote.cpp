// Generated. Do not edit, change cuda-api/.
#include "remote.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "call_numbers.h"
#include "interposer/session/call.h"
#include "wire/decoder.h"
#include "wire/encoder.h"
#include "wire/frame.h"

namespace remote {

CUresult cuToyOpen_v2(CUstream* stream, CUdevice device) {
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyOpen_v2, 8, interposer::kOrdered)) return call.status();
  if (stream == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(device);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto streamReply = reply.get<std::uint64_t>();
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  *stream = interposer::handle<CUstream>(streamReply);
  return CUDA_SUCCESS;
}

CUresult cuToyClose(CUstream stream) {
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyClose, 8, interposer::kOrdered)) return call.status();
  call.encoder().put(interposer::number(stream));
  wire::Decoder reply;
  return call.wait(reply);
}

CUresult cuToyWait(CUstream stream) {
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyWait, 8, interposer::kOrdered)) return call.status();
  call.encoder().put(interposer::number(stream));
  wire::Decoder reply;
  return call.wait(reply);
}

CUresult cuToyMark(CUstream stream) {
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyMark, 8, interposer::kOrdered)) return call.status();
  call.encoder().put(interposer::number(stream));
  return call.enqueue();
}

CUresult cuToyFill(unsigned long long address, const CUtoyBox* box, const CUdevice* device, CUstream stream) {
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyFill, 64, interposer::kOrdered)) return call.status();
  if (box == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(address);
  call.encoder().put(*box);
  call.encoder().putBytes(device, device == nullptr ? 0 : sizeof *device);
  call.encoder().put(interposer::number(stream));
  return call.enqueue();
}

CUresult cuToyPaint(CUtoyAddress address, size_t bytes, CUstream stream) {
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyPaint, 24, interposer::kOrdered)) return call.status();
  call.encoder().put(address);
  call.encoder().put(bytes);
  call.encoder().put(interposer::number(stream));
  return call.enqueue();
}

CUresult cuToyPlay(CUmodule module, CUstream stream) {
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyPlay, 16, interposer::kOrdered)) return call.status();
  call.encoder().put(interposer::number(module));
  call.encoder().put(interposer::number(stream));
  return call.enqueue(module != CUmodule{});
}

CUresult cuToyLoad(CUmodule* module, const char* name, const void* image) {
  const std::size_t nameBytes = name == nullptr ? 0 : std::strlen(name) + 1;
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyLoad, 16 + wire::Encoder::padded(nameBytes), interposer::kOrdered)) return call.status();
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().putBytes(name, nameBytes);
  call.encoder().put(reinterpret_cast<std::uint64_t>(image));
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto moduleReply = reply.get<std::uint64_t>();
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  *module = interposer::handle<CUmodule>(moduleReply);
  return CUDA_SUCCESS;
}

CUresult cuToyPart(CUmemGenericAllocationHandle* part, size_t* bytes, CUmodule module) {
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyPart, 8, interposer::kOrdered)) return call.status();
  if (part == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(interposer::number(module));
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto partReply = reply.get<std::uint64_t>();
  const auto bytesReply = reply.get<size_t>();
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  *part = interposer::handle<CUmemGenericAllocationHandle>(partReply);
  if (bytes != nullptr) *bytes = bytesReply;
  return CUDA_SUCCESS;
}

CUresult cuToyGather(const CUstream* streams, const CUtoyOrder* orders, const CUtoyOrder* more, unsigned int count, CUmodule* modules, unsigned short* sizes, CUtoyBox* box) {
  if (static_cast<std::size_t>(count) > wire::kMaxFrameBytes) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t streamsBytes = count * sizeof(const CUstream);
  const std::size_t ordersBytes = count * sizeof(const CUtoyOrder);
  const std::size_t moreBytes = count * sizeof(const CUtoyOrder);
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyGather, 64 + wire::Encoder::padded(streamsBytes) + wire::Encoder::padded(ordersBytes) + wire::Encoder::padded(moreBytes), interposer::kOrdered)) return call.status();
  if (streams == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  if (orders == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  if (modules == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  if (sizes == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  if (box == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(static_cast<std::uint64_t>(streamsBytes));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) call.encoder().put(interposer::number(streams[i]));
  call.encoder().putBytes(orders, ordersBytes);
  call.encoder().putBytes(more, more == nullptr ? 0 : moreBytes);
  call.encoder().put(count);
  call.encoder().put(*box);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto modulesReply = reply.getArray<std::uint64_t>(wire::kReplyBytes);
  if (modulesReply.size() != static_cast<std::size_t>(count)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  const auto sizesReply = reply.getArray<unsigned short>(wire::kReplyBytes);
  if (sizesReply.size() != static_cast<std::size_t>(count)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  const auto boxReply = reply.get<CUtoyBox>();
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) modules[i] = interposer::handle<CUmodule>(modulesReply[i]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) sizes[i] = sizesReply[i];
  *box = boxReply;
  return CUDA_SUCCESS;
}

CUresult cuToyAsk(int* answer, CUdevice device) {
  interposer::Call call;
  if (!call.begin(CallNumber::cuToyAsk, 8, interposer::kUnordered)) return call.status();
  if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(device);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  const auto answerReply = reply.get<int>();
  if (!reply.ok()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  *answer = answerReply;
  return CUDA_SUCCESS;
}

}  // namespace remote
