#include "interposer/export_tables/context_storage.h"

#include <array>
#include <atomic>
#include <map>
#include <shared_mutex>

#include "interposer/contexts/contexts.h"
#include "interposer/session/thread.h"

namespace interposer {

namespace {

struct Storage {
  std::shared_mutex mutex;
  std::map<std::pair<std::uint64_t, const void*>, void*> values;  ///< (context id, key) -> value
  std::atomic<unsigned> changes{0};
};

Storage& storage() {
  static Storage* const instance = new Storage;
  return *instance;
}

/// Called with every call of the runtime, so each thread caches the last answer until something
/// changes.
struct Answer {
  CUcontext context;
  const void* key;
  void* value;
  unsigned contextChange;
  unsigned change;
};
__attribute__((tls_model("initial-exec"))) thread_local std::array<Answer, 2> answers{};

CUresult lookUp(CUcontext context, const void* key, void** value) {
  ContextRecord record;
  if (!findContext(context, record)) return CUDA_ERROR_INVALID_CONTEXT;
  const std::shared_lock lock(storage().mutex);
  const auto found = storage().values.find({record.id, key});
  if (found == storage().values.end()) return CUDA_ERROR_INVALID_HANDLE;
  *value = found->second;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult putContextValue(CUcontext context, const void* key, void* value, ContextValueDestructor) {
  ContextRecord record;
  if (!findContext(context, record)) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(storage().mutex);
  storage().values[{record.id, key}] = value;
  ++storage().changes;
  return CUDA_SUCCESS;
}

CUresult removeContextValue(CUcontext context, const void* key) {
  ContextRecord record;
  if (!findContext(context, record)) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(storage().mutex);
  ++storage().changes;
  return storage().values.erase({record.id, key}) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult getContextValue(void** value, CUcontext context, const void* key) {
  if (context == nullptr || context == reinterpret_cast<CUcontext>(-1))
    context = Thread::current().context();
  const unsigned contextChange = contextChanges();
  const unsigned change = storage().changes.load(std::memory_order_acquire);
  Answer& answer = answers[reinterpret_cast<std::uintptr_t>(key) >> 4 & 1];
  if (answer.context != context || answer.key != key || answer.contextChange != contextChange ||
      answer.change != change || context == nullptr) [[unlikely]] {
    void* found = nullptr;
    if (const CUresult status = lookUp(context, key, &found); status != CUDA_SUCCESS) return status;
    answer = {context, key, found, contextChange, change};
  }
  *value = answer.value;
  return CUDA_SUCCESS;
}

void clearContextStorage(std::uint64_t contextId) {
  const std::lock_guard lock(storage().mutex);
  ++storage().changes;
  auto& values = storage().values;
  values.erase(values.lower_bound({contextId, nullptr}),
               values.lower_bound({contextId + 1, nullptr}));
}

}  // namespace interposer
