// Texture and surface objects. The program gets the driver's own values, because kernels receive
// them among parameters that nobody here reads. Arrays in descriptions are handles.
#include <algorithm>
#include <array>

#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

CUresult create(Call& call, unsigned long long* object) {
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) *object = reply.get<unsigned long long>();
  return status;
}

CUresult describe(CallNumber number, unsigned long long object, CUDA_RESOURCE_DESC* description) {
  Call call;
  if (!call.begin(number, 8, kOrdered)) return call.status();
  if (description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(object);
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) *description = reply.get<CUDA_RESOURCE_DESC>();
  return status;
}

using Colour = std::array<float, 4>;

}  // namespace

CUresult cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                           const CUDA_TEXTURE_DESC* pTexDesc,
                           const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  constexpr std::size_t kBytes =
      sizeof *pResDesc + sizeof *pTexDesc + sizeof *pResViewDesc + 4 * sizeof(std::uint64_t);
  Call call;
  if (!call.begin(CallNumber::cuTexObjectCreate, kBytes, kOrdered)) return call.status();
  if (pTexObject == nullptr || pResDesc == nullptr || pTexDesc == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(*pResDesc);
  call.encoder().put(*pTexDesc);
  call.encoder().putBytes(pResViewDesc, pResViewDesc == nullptr ? 0 : sizeof *pResViewDesc);
  return create(call, pTexObject);
}

CUresult cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  Call call;
  if (!call.begin(CallNumber::cuSurfObjectCreate, sizeof *pResDesc, kOrdered)) return call.status();
  if (pSurfObject == nullptr || pResDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(*pResDesc);
  return create(call, pSurfObject);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject) {
  return describe(CallNumber::cuTexObjectGetResourceDesc, texObject, pResDesc);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject) {
  return describe(CallNumber::cuSurfObjectGetResourceDesc, surfObject, pResDesc);
}

// Colours of texture references, which have four components.

CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float* pBorderColor) {
  Call call;
  if (!call.begin(CallNumber::cuTexRefSetBorderColor, 8 + sizeof(Colour), kOrdered))
    return call.status();
  if (pBorderColor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(number(hTexRef));
  call.encoder().put(Colour{pBorderColor[0], pBorderColor[1], pBorderColor[2], pBorderColor[3]});
  wire::Decoder reply;
  return call.wait(reply);
}

CUresult cuTexRefGetBorderColor(float* pBorderColor, CUtexref hTexRef) {
  Call call;
  if (!call.begin(CallNumber::cuTexRefGetBorderColor, 8, kOrdered)) return call.status();
  if (pBorderColor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.encoder().put(number(hTexRef));
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status != CUDA_SUCCESS) return status;
  const auto colour = reply.get<Colour>();
  std::copy(colour.begin(), colour.end(), pBorderColor);
  return CUDA_SUCCESS;
}

}  // namespace interposer
