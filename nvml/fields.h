// Fields of nvmlDeviceGetFieldValues that a tenant may read: the state of the device. Counters of
// traffic (PCIe, NVLink) are left out, because they tell about other tenants.
#pragma once

namespace nvml {

struct FieldRange {
  unsigned first;
  unsigned last;
};

inline constexpr FieldRange kFields[] = {
    {1, 31},     // ECC mode and errors, retired pages
    {74, 76},    // time below the clocks because of power, heat and sync boost
    {82, 83},    // memory temperature, energy
    {92, 95},    // pages to retire, PCIe replays
    {142, 145},  // remapped rows
    {185, 196},  // power, its limits, temperature limits
    {226, 230},  // pending resets, PCIe atomics, recovery action
    {269, 271},  // time below the clocks because of heat and the power brake
};

}  // namespace nvml
