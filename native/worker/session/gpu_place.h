// Memory of the GPU at addresses of the window, for managed memory that moves.
#pragma once

#include <cstdint>

#include "driver.h"
#include "native/worker/accounts/quota.h"

namespace worker {

/// Not thread-safe.
class GpuPlace {
 public:
  /// Whether the addresses are the session's own, and nothing lies there.
  bool empty() const { return reserved_ == 0 && !lost_; }
  /// Something else lies at the addresses: the session must end.
  bool lost() const { return lost_; }
  /// Reserves exactly these addresses with the driver and maps memory of the device there. It is
  /// charged before. If it fails, the place is empty, unless the driver does not give back what it
  /// gave.
  CUresult take(const Driver& driver, Quota& quota, std::uint64_t address, std::uint64_t bytes,
                CUdevice device);
  /// Gives back all that is left, and refunds it. After an error it may be called again.
  CUresult leave(const Driver& driver, Quota& quota);

 private:
  bool reserve(const Driver& driver, std::uint64_t bytes);
  void keepReserved(std::uint64_t bytes);
  CUresult back(const Driver& driver, std::uint64_t bytes, CUdevice device);

  std::uint64_t address_ = 0;
  std::uint64_t reserved_ = 0;  ///< addresses that the driver has
  std::uint64_t mapped_ = 0;    ///< of them, with memory
  std::uint64_t charged_ = 0;
  bool lost_ = false;
};

}  // namespace worker
