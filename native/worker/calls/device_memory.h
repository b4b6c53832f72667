// Charges for memory of a GPU.
#pragma once

#include <cstdint>

namespace worker {

class Thread;

/// Size of an allocation on the GPU. Allocations of up to 1 MiB share pages; larger ones have pages
/// of their own (measured, driver 580).
std::uint64_t rounded(std::uint64_t bytes);

/// Charges the quota. If it is full, waits for pending frees of pools and streams, then retries.
bool charge(Thread& thread, std::uint64_t bytes);

/// Records a charge, by the address of the memory or object. Its owner is the current context, with
/// which the memory ends.
void remember(Thread& thread, std::uint64_t key, std::uint64_t bytes);

}  // namespace worker
