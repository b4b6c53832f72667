#include <algorithm>
#include <cstring>

#include "error_texts.h"
#include "interposer/entry/driver_version.h"
#include "interposer/entry/missing_calls.h"
#include "interposer/export_tables/export_tables.h"
#include "interposer/session/call.h"
#include "interposer/session/session.h"
#include "interposer/trace/trace.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

const ErrorText* errorText(CUresult error) {
  const auto* found = std::ranges::find(kErrorTexts, error, &ErrorText::result);
  return found != std::end(kErrorTexts) ? found : nullptr;
}

}  // namespace

CUresult cuInit(unsigned int Flags) {
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = Session::open();
  if (status == CUDA_SUCCESS) trace::sessionOpened();
  tellMissing();
  return status;
}

/// Answered before cuInit too, as natively.
CUresult cuDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = interposer::driverVersion();
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** pStr) {
  if (pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* text = errorText(error);
  *pStr = text != nullptr ? text->text : nullptr;
  return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char** pStr) {
  if (pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* text = errorText(error);
  *pStr = text != nullptr ? text->name : nullptr;
  return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (ppExportTable == nullptr || pExportTableId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *ppExportTable = exportTable(*pExportTableId);
  return *ppExportTable != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// Kernels load at their first use unless the program asks otherwise: cudart loads every image at
/// start when this says EAGER.
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const char* wanted = std::getenv("CUDA_MODULE_LOADING");
  *mode = wanted != nullptr && std::strcmp(wanted, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING
                                                                 : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

/// Profilers are out of reach; programs that bracket a region with these go on as without one.
CUresult cuProfilerStart() { return Session::ready(); }
CUresult cuProfilerStop() { return Session::ready(); }

}  // namespace interposer
