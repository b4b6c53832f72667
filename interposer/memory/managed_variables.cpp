#include "interposer/memory/managed_variables.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interposer/graphs/pageable_copy.h"
#include "interposer/memory/managed_ranges.h"
#include "interposer/memory/written_pages.h"
#include "interposer/session/call.h"
#include "interposer/session/call_hooks.h"
#include "interposer/session/log.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/address_window.h"
#include "wire/copy.h"
#include "wire/handle_table.h"

namespace interposer {

namespace {

struct Mirror {
  std::uint64_t code = 0;
  CUcontext context = nullptr;   ///< null: a variable of a library, which all contexts share
  std::vector<std::byte> known;  ///< what both sides had when they last met
  std::unique_ptr<WrittenPages> written{};  ///< by this process, since then
};

struct Mirrors {
  std::mutex mutex;
  std::map<CUdeviceptr, Mirror> byAddress;
  std::map<CUcontext, CUstream> streams;  ///< for the copies; they wait for no other stream
};

Mirrors& mirrors() {
  static auto* const instance = new Mirrors;
  return *instance;
}

/// Set while this thread copies: its own calls copy nothing.
thread_local bool copying = false;

struct Copying {
  Copying() { copying = true; }
  ~Copying() { copying = false; }
};

std::byte* hostOf(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }

/// Makes the pages accessible that session.cpp reserved, where drivers place memory.
bool mapCopy(CUdeviceptr address, std::size_t bytes) {
  const std::uint64_t begin = address & ~std::uint64_t{4095};
  const std::uint64_t end = (address + bytes + 4095) & ~std::uint64_t{4095};
  for (const auto& range : wire::deviceRanges()) {
    if (range.contains(begin, end - begin))
      return mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE) == 0;
  }
  return false;
}

CUstream streamOf(CUcontext context) {
  CUstream& stream = mirrors().streams[context];
  if (stream == nullptr) remote::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  return stream;
}

CUresult fetch(CUdeviceptr address, std::span<std::byte> into, CUstream stream) {
  return interposer::cuMemcpyDtoHAsync_v2(into.data(), address, into.size(), stream);
}

/// Calls body(begin, bytes) for each run of blocks that differ.
template <class Body>
void eachDifference(const std::byte* one, const std::byte* other, std::size_t bytes, Body body) {
  constexpr std::size_t kBlock = 4096;
  std::size_t run = 0;  // the end of the blocks that are equal
  for (std::size_t at = 0; at < bytes; at += kBlock) {
    if (std::memcmp(one + at, other + at, std::min(kBlock, bytes - at)) != 0) continue;
    if (run < at) body(run, at - run);
    run = at + kBlock;
  }
  if (run < bytes) body(run, bytes - run);
}

/// Calls body(address, mirror, stream) for each copy of the current context.
template <class Body>
void eachMirror(Body body) {
  const CUcontext context = Thread::current().context();
  if (copying || context == nullptr || Session::ready() != CUDA_SUCCESS) return;
  const Copying own;
  const std::lock_guard lock(mirrors().mutex);
  const RelaxedCapture relaxed;
  for (auto& [address, mirror] : mirrors().byAddress) {
    if (mirror.context == nullptr || mirror.context == context)
      body(address, mirror, streamOf(context));
  }
}

/// Only what the program has changed is sent.
void sendMirrors() {
  eachMirror([](CUdeviceptr address, Mirror& mirror, CUstream stream) {
    bool sent = false;
    mirror.written->take([&](std::uint64_t begin, std::uint64_t end) {
      std::byte* const known = mirror.known.data() + (begin - address);
      eachDifference(known, hostOf(begin), end - begin, [&](std::size_t at, std::size_t bytes) {
        std::memcpy(known + at, hostOf(begin + at), bytes);
        interposer::cuMemcpyHtoDAsync_v2(begin + at, known + at, bytes, stream);
        sent = true;
      });
    });
    if (sent) interposer::cuStreamSynchronize(stream);
  });
}

/// Only what the GPU has changed is written here: another thread may be writing the rest.
void fetchMirror(CUdeviceptr address, std::span<std::byte> known, CUstream stream) {
  constexpr std::size_t kPiece = 4 << 20;
  std::vector<std::byte> now(std::min(kPiece, known.size()));
  for (std::size_t done = 0; done < known.size(); done += kPiece) {
    now.resize(std::min(kPiece, known.size() - done));
    if (fetch(address + done, now, stream) != CUDA_SUCCESS) return;
    std::byte* const before = known.data() + done;
    eachDifference(before, now.data(), now.size(), [&](std::size_t at, std::size_t bytes) {
      for (std::size_t i = at; i < at + bytes; ++i) {
        if (now[i] != before[i]) hostOf(address + done)[i] = before[i] = now[i];
      }
    });
  }
}

void fetchMirrors() {
  eachMirror([](CUdeviceptr address, Mirror& mirror, CUstream stream) {
    fetchMirror(address, mirror.known, stream);
  });
}

template <class Ended>
void forget(Ended ended) {
  const std::lock_guard lock(mirrors().mutex);
  std::erase_if(mirrors().byAddress, [&](const auto& entry) {
    if (!ended(entry.second)) return false;
    managedRanges().remove(entry.first);
    return true;
  });
}

/// The copy stays readable, because the program may still look at it.
void forgetCode(const std::function<bool(std::uint64_t)>& ended) {
  forget([&](const Mirror& mirror) { return ended(mirror.code); });
}

constexpr CallHooks kHooks{sendMirrors, fetchMirrors, forgetCode};

CUresult add(CUdeviceptr address, Mirror mirror) {
  const std::size_t bytes = mirror.known.size();
  const std::lock_guard lock(mirrors().mutex);
  if (mirrors().byAddress.contains(address)) return CUDA_SUCCESS;
  if (!mapCopy(address, bytes)) {
    log("a managed variable of %zu bytes lies at an address that this program uses otherwise; "
        "start it with an ordinary address space layout",
        bytes);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::memcpy(hostOf(address), mirror.known.data(), bytes);
  mirror.written = std::make_unique<WrittenPages>(address, address + bytes);
  mirrors().byAddress.emplace(address, std::move(mirror));
  managedRanges().add(address, bytes);
  callHooks.store(&kHooks, std::memory_order_release);
  return CUDA_SUCCESS;
}

/// Asks for the variable's address and its content from known.size() on, which it appends.
CUresult askManaged(CUlibrary library, const char* name, CUdeviceptr& address, std::size_t& size,
                    std::vector<std::byte>& known) {
  const std::size_t nameBytes = std::strlen(name) + 1;
  if (nameBytes > wire::kNameBytes) return CUDA_ERROR_NOT_FOUND;
  Call call;
  if (!call.begin(CallNumber::cuLibraryGetManaged, 40 + nameBytes, kOrdered)) return call.status();
  call.encoder().put(number(library));
  call.encoder().put<std::uint64_t>(known.size());
  call.encoder().putBytes(name, nameBytes);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  address = reply.get<CUdeviceptr>();
  size = reply.get<std::uint64_t>();
  const auto content = reply.getBytes(wire::kInlineCopyBytes);
  if (!reply.finished() || (content.empty() && known.size() < size))
    return CUDA_ERROR_DEVICE_UNAVAILABLE;
  known.insert(known.end(), content.begin(), content.end());
  return CUDA_SUCCESS;
}

}  // namespace

CUresult mirrorIfManaged(CUdeviceptr address, std::size_t bytes, std::uint64_t code) {
  unsigned managed = 0;
  CUresult status =
      interposer::cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
  if (status != CUDA_SUCCESS || managed == 0) return CUDA_SUCCESS;
  const CUcontext context = Thread::current().context();
  Mirror mirror{code, context, std::vector<std::byte>(bytes)};
  {
    const Copying own;
    const std::lock_guard lock(mirrors().mutex);
    if (mirrors().byAddress.contains(address)) return CUDA_SUCCESS;
    status = fetch(address, mirror.known, streamOf(context));
  }
  return status == CUDA_SUCCESS ? add(address, std::move(mirror)) : status;
}

void forgetMirrors(CUcontext context) {
  forget([&](const Mirror& mirror) { return mirror.context == context; });
  const std::lock_guard lock(mirrors().mutex);
  mirrors().streams.erase(context);
}

CUresult cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library,
                             const char* name) {
  if (name == nullptr || (dptr == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  size_t size = 0;
  Mirror mirror{number(library), nullptr, {}};
  do {
    const CUresult status = askManaged(library, name, address, size, mirror.known);
    if (status != CUDA_SUCCESS) return status;
  } while (mirror.known.size() < size);
  Session::current()->deviceRanges.add(address, size, number(library));
  if (const CUresult status = add(address, std::move(mirror)); status != CUDA_SUCCESS)
    return status;
  if (dptr != nullptr) *dptr = address;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

}  // namespace interposer
