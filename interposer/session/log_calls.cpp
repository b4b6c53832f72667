// The cuLogs functions. They need no worker, and work before cuInit.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "interposer/session/log.h"
#include "interposer/session/log_buffer.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

CUresult invalid(const char* call, const char* sentence) {
  logOf(call, sentence);
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void* userData,
                                CUlogsCallbackHandle* callback_out) {
  if (callbackFunc == nullptr) return invalid("cuLogsRegisterCallback", "callback cannot be NULL");
  const CUlogsCallbackHandle handle = LogBuffer::instance().addCallback(callbackFunc, userData);
  if (callback_out != nullptr) *callback_out = handle;
  return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
  return LogBuffer::instance().removeCallback(callback)
             ? CUDA_SUCCESS
             : invalid("cuLogsUnregisterCallback", "callback is not registered");
}

CUresult cuLogsCurrent(CUlogIterator* iterator_out, unsigned int flags) {
  if (iterator_out == nullptr) return invalid("cuLogsCurrent", "iterator cannot be NULL");
  if (flags != 0) return invalid("cuLogsCurrent", "flags must be 0");
  *iterator_out = LogBuffer::instance().end();
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToFile(CUlogIterator* iterator, const char* pathToFile, unsigned int flags) {
  if (pathToFile == nullptr) return invalid("cuLogsDumpToFile", "path cannot be NULL");
  if (flags != 0) return invalid("cuLogsDumpToFile", "flags must be 0");
  std::FILE* const file = std::fopen(pathToFile, "we");
  if (file == nullptr) return invalid("cuLogsDumpToFile", "the file cannot be opened");
  CUlogIterator all = 0;
  const std::string text = LogBuffer::instance().textFrom(iterator != nullptr ? *iterator : all);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size,
                            unsigned int flags) {
  if (buffer == nullptr) return invalid("cuLogsDumpToMemory", "buffer cannot be NULL");
  if (size == nullptr) return invalid("cuLogsDumpToMemory", "size cannot be NULL");
  if (flags != 0) return invalid("cuLogsDumpToMemory", "flags must be 0");
  CUlogIterator begin = iterator != nullptr ? *iterator : 0;
  const bool any = begin < LogBuffer::instance().end();
  const std::size_t room = *size;
  const std::string text = LogBuffer::instance().latestFrom(begin, room == 0 ? 0 : room - 1);
  *size = text.size();
  if (room > 0) std::memcpy(buffer, text.c_str(), text.size() + 1);
  if (any && text.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (iterator != nullptr) *iterator = begin;
  return CUDA_SUCCESS;
}

}  // namespace interposer
