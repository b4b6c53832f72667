// Names and descriptions of CUresults, from the specification's table.
#include <algorithm>
#include <iterator>

#include "error_texts.h"
#include "native/simulator/driver_call.h"

namespace {

CUresult answer(CUresult error, const char** text, const char* ErrorText::*field) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* found = std::find_if(std::begin(kErrorTexts), std::end(kErrorTexts),
                                   [&](const ErrorText& row) { return row.result == error; });
  *text = found == std::end(kErrorTexts) ? nullptr : found->*field;
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

DRIVER_CALL cuGetErrorName(CUresult error, const char** pStr) {
  return answer(error, pStr, &ErrorText::name);
}
DRIVER_CALL cuGetErrorString(CUresult error, const char** pStr) {
  return answer(error, pStr, &ErrorText::text);
}
