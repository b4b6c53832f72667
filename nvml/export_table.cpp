// The private table that nvidia-smi asks for by its UUID. Without it, nvidia-smi reports a mismatch
// of versions. It accepts "not supported" from every slot, but lists processes only by the table.
// The slots that answer were found by watching what nvidia-smi 535 and 550 print for given answers.
#include <array>
#include <cstdlib>
#include <cstring>

#include "nvml/library.h"
#include "nvml/process_name.h"

using namespace nvml;

namespace {

constexpr unsigned char kPrivateTable[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                             0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
constexpr std::size_t kSlots = 512;
/// Whether a GPU can be monitored by pmon and dmon.
constexpr std::size_t kMonitorSlot = 72;
/// What pmon shows of the processes' use.
constexpr std::size_t kUseSlot = 145;
constexpr std::size_t kComputeSlot = 213;
constexpr std::size_t kGraphicsSlot = 214;
constexpr std::size_t kMpsSlot = 215;

using Slot = void (*)();

struct NamedProcess {
  ProcessDetail detail;
  char name[4096];
};
static_assert(sizeof(NamedProcess) == 4128);

/// A sample tells for each engine one process and its use. Which engine it is, the place says:
/// multiprocessors, memory controller, encoder, decoder, JPEG, OFA.
struct EngineSample {
  unsigned use;  ///< percent
  unsigned unused;
  unsigned pid;
  unsigned name[17];
};
struct UseSample {
  Wide timeStamp;
  EngineSample engines[6];
};
static_assert(sizeof(UseSample) == 488);
/// Before, a sample had four engines.
constexpr int kSixEnginesSince = 550;

Return unsupported() { return kNotSupported; }

Return canMonitor(Device device, unsigned* supported) {
  return onDevice(device, [&](const Gpu&, unsigned) {
    if (supported == nullptr) return kInvalidArgument;
    *supported = 1;
    return kSuccess;
  });
}

Return listNone(Device device, unsigned* count) {
  return onDevice(device, [&](const Gpu&, unsigned) {
    if (count == nullptr) return kInvalidArgument;
    *count = 0;
    return kSuccess;
  });
}

Return listCompute(Device device, unsigned* count, NamedProcess* processes) {
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    if (count == nullptr) return kInvalidArgument;
    const unsigned room = *count;
    *count = static_cast<unsigned>(gpu.processes.size());
    if (room < *count) return kInsufficientSize;
    for (const Process& process : gpu.processes) {
      NamedProcess& entry = *processes++;
      entry.detail = {process.pid, process.memory, kNoInstance, kNoInstance, 0};
      readProcessName(process.pid, entry.name, sizeof entry.name);
    }
    return kSuccess;
  });
}

bool hasSixEngines(const Page& page) {
  const auto version = page.system.find("nvmlSystemGetDriverVersion");
  return version != page.system.end() &&
         std::atoi(version->second.bytes.c_str()) >= kSixEnginesSince;
}

/// nvidia-smi shows for each process the sum of its samples, divided by the number of all samples.
Return listUses(Device device, Wide, unsigned*, unsigned* count, UseSample* samples) {
  const Return known =
      onPage([](const Page& page) { return hasSixEngines(page) ? kSuccess : kNotSupported; });
  if (known != kSuccess) return known;
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    if (count == nullptr || samples == nullptr) return kInvalidArgument;
    const unsigned room = *count;
    *count = static_cast<unsigned>(gpu.processes.size());
    if (room < *count) return kInsufficientSize;
    for (const Process& process : gpu.processes) {
      *samples = {};
      samples->engines[0] = {process.busy * *count, 0, process.pid, {}};
      ++samples;
    }
    return kSuccess;
  });
}

template <class Function>
Slot slotOf(Function* function) {
  return reinterpret_cast<Slot>(function);
}

}  // namespace

NVML_EXPORT Return nvmlInternalGetExportTable(const void** table, const unsigned char* uuid) {
  static const std::array<Slot, kSlots> slots = [] {
    std::array<Slot, kSlots> all;
    all.fill(slotOf(unsupported));
    all[kMonitorSlot] = slotOf(canMonitor);
    all[kUseSlot] = slotOf(listUses);
    all[kComputeSlot] = slotOf(listCompute);
    all[kGraphicsSlot] = all[kMpsSlot] = slotOf(listNone);
    return all;
  }();
  if (table == nullptr || uuid == nullptr) return kInvalidArgument;
  if (std::memcmp(uuid, kPrivateTable, sizeof kPrivateTable) != 0) return kNotFound;
  *table = slots.data();
  return kSuccess;
}
