// The private table that nvidia-smi asks for by its UUID. Without it, nvidia-smi reports a mismatch
// of versions. It accepts "not supported" from every slot, but lists processes only by the table.
// The slots that answer were found by watching what nvidia-smi 535 prints for given answers.
#include <array>
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
constexpr std::size_t kComputeSlot = 213;
constexpr std::size_t kGraphicsSlot = 214;
constexpr std::size_t kMpsSlot = 215;

using Slot = void (*)();

struct NamedProcess {
  ProcessDetail detail;
  char name[4096];
};
static_assert(sizeof(NamedProcess) == 4128);

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
    all[kComputeSlot] = slotOf(listCompute);
    all[kGraphicsSlot] = all[kMpsSlot] = slotOf(listNone);
    return all;
  }();
  if (table == nullptr || uuid == nullptr) return kInvalidArgument;
  if (std::memcmp(uuid, kPrivateTable, sizeof kPrivateTable) != 0) return kNotFound;
  *table = slots.data();
  return kSuccess;
}
