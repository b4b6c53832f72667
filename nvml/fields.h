// Fields of nvmlDeviceGetFieldValues that a tenant may read: the state of the device and of its
// links. Counters of traffic (PCIe, NVLink) are left out, because they tell about other tenants.
#pragma once

namespace nvml {

struct FieldRange {
  unsigned first;
  unsigned last;
  unsigned scopes;  ///< power: of the GPU, the module and the memory; NVLink: its links
};

inline constexpr FieldRange kFields[] = {
    {1, 31, 1},      // ECC mode and errors, retired pages
    {74, 76, 1},     // time below the clocks because of power, heat and sync boost
    {82, 83, 1},     // memory temperature, energy
    {90, 91, 1},     // NVLink: speed of a link, number of links
    {92, 95, 1},     // pages to retire, PCIe replays
    {142, 145, 1},   // remapped rows
    {164, 166, 18},  // NVLink: speed, state and version of each link
    {185, 192, 3},   // power and its limits
    {193, 196, 1},   // temperature limits
    {226, 230, 1},   // pending resets, PCIe atomics, recovery action
    {269, 271, 1},   // time below the clocks because of heat and the power brake
};

}  // namespace nvml
