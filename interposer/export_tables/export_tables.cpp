// The meaning of each slot was found by observation: which library calls it, and what changes with
// the answer. docs/architecture.md describes the limits. A table is an array of words: its size in
// bytes, then functions. Every slot can be called: unknown ones answer CUDA_ERROR_NOT_SUPPORTED.
#include "interposer/export_tables/export_tables.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "interposer/code/kernels.h"
#include "interposer/contexts/contexts.h"
#include "interposer/export_tables/context_storage.h"
#include "interposer/export_tables/integrity.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

CUresult notSupported() { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult nothingToDo() { return CUDA_SUCCESS; }

template <std::size_t kWords>
struct Table {
  std::array<const void*, kWords> words;

  explicit Table(std::initializer_list<std::pair<std::size_t, const void*>> slots,
                 bool sized = true) {
    words.fill(reinterpret_cast<const void*>(notSupported));
    if (sized) words[0] = reinterpret_cast<const void*>(kWords * sizeof(void*));
    for (const auto& [slot, function] : slots) words[slot] = function;
  }
};

template <class Function>
std::pair<std::size_t, const void*> slot(std::size_t index, Function* function) {
  return {index, reinterpret_cast<const void*>(function)};
}

// 6bd5fb6c: what only the runtime may ask.
namespace runtime_interface {

/// The primary context of a device without retaining it.
CUresult primary(CUcontext* context, CUdevice device) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (device < 0 || static_cast<std::size_t>(device) >= Session::current()->devices().size())
    return CUDA_ERROR_INVALID_DEVICE;
  *context = primaryContext(device);
  return CUDA_SUCCESS;
}
CUresult loadModule(CUmodule* module, const void* image) {
  return interposer::cuModuleLoadData(module, image);
}
CUresult loadModuleOf(CUmodule* module, const void* image, void*, void*, void*) {
  return interposer::cuModuleLoadData(module, image);
}
CUresult loadFatbin(const void* image, CUmodule* module, void*, void*, void*) {
  return interposer::cuModuleLoadData(module, image);
}

const Table<13> table{slot(1, loadModule),  slot(2, primary),    slot(6, loadModuleOf),
                      slot(7, nothingToDo), slot(8, loadFatbin), slot(12, nothingToDo)};

}  // namespace runtime_interface

// a094798c: flags by which a profiler would ask the runtime to call back. None is ever set.
namespace callback_hooks {

std::uint32_t
    flags[1024];  // the runtime counts in elements, and wants at least as many as it has functions
std::uint32_t otherFlags[64];

void enabledFunctions(std::uint32_t** buffer, std::size_t* count) {
  *buffer = flags, *count = std::size(flags);
}
void enabledOthers(std::uint32_t** buffer, std::size_t* count) {
  *buffer = otherFlags, *count = std::size(otherFlags);
}

const Table<7> table{slot(1, nothingToDo), slot(2, enabledFunctions), slot(3, nothingToDo),
                     slot(4, nothingToDo), slot(5, nothingToDo),      slot(6, enabledOthers)};

}  // namespace callback_hooks

// 42d85a81: the calling thread's context; cuBLASLt asks before nearly every launch.
namespace thread_context {

CUresult current(CUcontext* context) {
  *context = Thread::current().context();
  return CUDA_SUCCESS;
}

const Table<3> table{slot(2, current)};

}  // namespace thread_context

// c693336e: values per context; no size word.
namespace context_values {

CUresult put(CUcontext context, void* key, void* value, ContextValueDestructor destructor) {
  return putContextValue(context, key, value, destructor);
}
CUresult remove(CUcontext context, void* key) { return removeContextValue(context, key); }
CUresult get(void** value, CUcontext context, void* key) {
  return getContextValue(value, context, key);
}

const Table<4> table{{slot(0, put), slot(1, remove), slot(2, get)}, false};

}  // namespace context_values

// 263e8860: asked once per runtime copy and context; both say "nothing special".
namespace context_checks {

CUresult check(CUcontext, std::uint32_t* special, void**) {
  *special = 0;
  return CUDA_SUCCESS;
}

const Table<15> table{slot(2, check), slot(3, nothingToDo)};

}  // namespace context_checks

// d4082055: the runtime's self-test of the driver.
namespace integrity {

CUresult answer(std::uint32_t selector, std::uint64_t unixSeconds, std::uint8_t (*result)[16]);

const Table<3> table{slot(1, answer)};

CUresult answer(std::uint32_t selector, std::uint64_t unixSeconds, std::uint8_t (*result)[16]) {
  integrityAnswer(selector, unixSeconds, {&runtime_interface::table, &table, table.words[1]},
                  *result);
  return CUDA_SUCCESS;
}

}  // namespace integrity

// 21318c60: cuBLAS and cuDNN tell contexts and streams apart by what these answer.
namespace identities {

CUresult contextId(CUcontext context, unsigned long long* id) {
  return interposer::cuCtxGetId(context, id);
}

CUresult contextDevice(CUcontext context, CUdevice* device) {
  return interposer::cuCtxGetDevice_v2(device, context);
}

/// Any value that is distinct for each stream of a context serves.
CUresult streamObject(CUcontext context, CUstream stream, void** object) {
  if (stream == reinterpret_cast<CUstream>(-1)) return CUDA_ERROR_INVALID_HANDLE;
  ContextRecord record;
  if (!findContext(context, record)) return CUDA_ERROR_INVALID_CONTEXT;
  *object = number(stream) > 2 ? stream
                               : reinterpret_cast<void*>((record.id << 4) | (number(stream) + 1));
  return CUDA_SUCCESS;
}

CUresult streamObjectId(CUcontext, void* object, std::uint64_t* id) {
  *id = reinterpret_cast<std::uint64_t>(object);
  return CUDA_SUCCESS;
}

const Table<93> table{slot(3, contextDevice), slot(4, contextId), slot(39, streamObjectId),
                      slot(51, streamObject)};

}  // namespace identities

// 6e163fbe: cuFFT walks through the functions of the module that it has loaded.
namespace module_functions {

using Found = void (*)(void* user, CUfunction function, std::uint64_t);

int forEach(CUcontext, CUmodule module, Found found, void* user) {
  unsigned count = 0;
  if (remote::cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS || count == 0) return 0;
  std::vector<CUfunction> functions(count);
  if (interposer::cuModuleEnumerateFunctions(functions.data(), count, module) != CUDA_SUCCESS)
    return 0;
  for (const CUfunction function : functions) found(user, function, 0);
  return 1;
}

const Table<64> table{slot(7, forEach)};

}  // namespace module_functions

// 1734dc26: cuBLASLt 13 asks in which order to try its candidates, and which. All of them, in the
// order it has.
namespace candidates {

struct Arrays {
  std::uint8_t order[256];
  std::uint8_t enabled[256];
};

CUresult list(std::uint8_t** order, std::uint8_t** enabled, void*, std::uint64_t count) {
  static const Arrays arrays = [] {
    Arrays all;
    for (unsigned i = 0; i < 256; ++i)
      all.order[i] = static_cast<std::uint8_t>(i), all.enabled[i] = 1;
    return all;
  }();
  // The library only reads them, so that one pair serves every caller.
  static_cast<void>(count);
  *order = const_cast<std::uint8_t*>(arrays.order);
  *enabled = const_cast<std::uint8_t*>(arrays.enabled);
  return CUDA_SUCCESS;
}

const Table<17> table{slot(4, list), slot(13, nothingToDo)};

}  // namespace candidates

struct Entry {
  std::uint8_t id[16];
  const void* table;
};

const Entry kTables[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
      0xf9},
     &runtime_interface::table},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
      0x66},
     &callback_hooks::table},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
      0xdc},
     &thread_context::table},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
      0x93},
     &context_values::table},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
      0x7e},
     &context_checks::table},
    {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
      0xf2},
     &integrity::table},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
      0xf2},
     &identities::table},
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99,
      0x1e},
     &module_functions::table},
    {{0x17, 0x34, 0xdc, 0x26, 0x80, 0x0d, 0x47, 0x45, 0x87, 0x26, 0xc0, 0xf1, 0xe7, 0xdd, 0x8b,
      0xca},
     &candidates::table},
};

}  // namespace

const void* exportTable(const CUuuid& id) {
  const auto* found = std::ranges::find_if(
      kTables, [&](const Entry& entry) { return std::memcmp(entry.id, &id, sizeof id) == 0; });
  return found != std::end(kTables) ? found->table : nullptr;
}

}  // namespace interposer
