#include "interposer/context_storage.h"

#include <map>
#include <shared_mutex>

#include "interposer/contexts.h"

namespace interposer {

namespace {

struct Storage {
  std::shared_mutex mutex;
  std::map<std::pair<std::uint64_t, const void*>, void*> values;  ///< (context id, key) -> value
};

Storage& storage() {
  static Storage* const instance = new Storage;
  return *instance;
}

}  // namespace

CUresult putContextValue(CUcontext context, const void* key, void* value, ContextValueDestructor) {
  ContextRecord record;
  if (!findContext(context, record)) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(storage().mutex);
  storage().values[{record.id, key}] = value;
  return CUDA_SUCCESS;
}

CUresult removeContextValue(CUcontext context, const void* key) {
  ContextRecord record;
  if (!findContext(context, record)) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(storage().mutex);
  return storage().values.erase({record.id, key}) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// Asked with every call of the runtime, so it takes no lock that another reader holds up.
CUresult getContextValue(void** value, CUcontext context, const void* key) {
  ContextRecord record;
  if (!findContext(context, record)) return CUDA_ERROR_INVALID_CONTEXT;
  const std::shared_lock lock(storage().mutex);
  const auto found = storage().values.find({record.id, key});
  if (found == storage().values.end()) return CUDA_ERROR_INVALID_HANDLE;
  *value = found->second;
  return CUDA_SUCCESS;
}

void clearContextStorage(std::uint64_t contextId) {
  const std::lock_guard lock(storage().mutex);
  auto& values = storage().values;
  values.erase(values.lower_bound({contextId, nullptr}), values.lower_bound({contextId + 1, nullptr}));
}

}  // namespace interposer
