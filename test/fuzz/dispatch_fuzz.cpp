// Any frame of any call, with a driver that accepts everything and does nothing: no byte of a
// client may crash the worker's own code.
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <vector>

#include "call_numbers.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace {

CUresult agree() { return CUDA_SUCCESS; }
CUresult notFound() { return CUDA_ERROR_NOT_FOUND; }

/// The first error ends the parameters.
CUresult noParameter() { return CUDA_ERROR_INVALID_VALUE; }

template <class Function>
void set(Function& slot, CUresult (*function)()) {
  slot = reinterpret_cast<Function>(function);
}

/// Every entry of the table is a function pointer. These functions ignore all arguments.
void fill(worker::Driver& driver) {
  static_assert(sizeof driver % sizeof(void*) == 0);
  auto* slots = reinterpret_cast<CUresult (**)()>(&driver);
  for (std::size_t i = 0; i < sizeof driver / sizeof(void*); ++i) slots[i] = agree;
  set(driver.cuKernelGetName, notFound);  // would have to return a name
  set(driver.cuFuncGetName, notFound);
  set(driver.cuKernelGetParamInfo, noParameter);
  set(driver.cuFuncGetParamInfo, noParameter);
  // Without extents of the device, no array would be small enough to be made.
  driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute, CUdevice) {
    return *value = 1 << 17, CUDA_SUCCESS;
  };
}

struct Fixture {
  worker::Report report{-1};
  worker::Quota quota;
  worker::FiguresFile figures;
  worker::Output output;
  std::unique_ptr<worker::Session> session;
  std::unique_ptr<worker::Thread> thread;

  Fixture() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    session = std::make_unique<worker::Session>(ends[0], report, quota, figures.figures(), output,
                                                worker::Limits{});
    fill(session->driver);
    session->shared.window = {0x7000'0000'0000, 0x7100'0000'0000};
    session->shared.close();  // no memory file ever arrives
    thread = std::make_unique<worker::Thread>(*session, nullptr);
    for (int kind = 1; kind < static_cast<int>(wire::HandleKind::count); ++kind) {
      session->handles.add(static_cast<wire::HandleKind>(kind),
                           reinterpret_cast<void*>(0x1000 + kind));
    }
  }
};

}  // namespace

/// A real driver would own and return objects of some calls (host functions). This one drops them.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Fixture fixture;
  wire::FrameHeader header{};
  if (size < sizeof header.call) return 0;
  std::memcpy(&header.call, data, sizeof header.call);
  // Frames are 8-byte aligned copies of whole words.
  std::vector<std::uint64_t> words((size - sizeof header.call) / 8);
  if (!words.empty()) std::memcpy(words.data(), data + sizeof header.call, words.size() * 8);
  wire::Decoder in(reinterpret_cast<const std::byte*>(words.data()), words.size() * 8);
  static auto* const replyBytes = new std::byte[wire::kReplyBytes];
  wire::Encoder out(replyBytes, wire::kReplyBytes);
  worker::dispatch(*fixture.thread, header, in, out);
  return 0;
}
