// Counts how often the driver calls the kernel. It takes GPU memory in no other way.
#pragma once

#include <atomic>
#include <cstdint>

namespace worker {

/// ioctl calls of this process (uvm.cpp).
inline std::atomic<std::uint64_t> kernelCalls{0};

/// Whether the driver's calls are counted: it made some of them when it started.
inline std::atomic<bool> kernelCallsCounted{false};

}  // namespace worker
