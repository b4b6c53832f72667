// The private table that nvidia-smi asks for by its UUID. Without it, nvidia-smi reports a mismatch
// of versions. It accepts "not supported" from every slot.
#include <array>
#include <cstring>

#include "nvml/library.h"

using namespace nvml;

namespace {

constexpr unsigned char kPrivateTable[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                             0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
/// nvidia-smi of drivers 535 to 580 calls slots up to 81.
constexpr std::size_t kSlots = 512;

using Slot = Return (*)();

Return unsupported() { return kNotSupported; }

}  // namespace

NVML_EXPORT Return nvmlInternalGetExportTable(const void** table, const unsigned char* uuid) {
  static const std::array<Slot, kSlots> slots = [] {
    std::array<Slot, kSlots> all;
    all.fill(unsupported);
    return all;
  }();
  if (table == nullptr || uuid == nullptr) return kInvalidArgument;
  if (std::memcmp(uuid, kPrivateTable, sizeof kPrivateTable) != 0) return kNotFound;
  *table = slots.data();
  return kSuccess;
}
