// Charges streams. A stream takes device memory (0.54 MiB on an H200), which the driver keeps for
// the next stream. So the peak number of streams of a context is charged.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuda_abi.h"
#include "driver.h"
#include "native/worker/accounts/quota.h"

namespace worker {

/// Thread-safe.
class StreamAccount {
 public:
  /// `bytes`: device memory of one stream; 0: unknown.
  StreamAccount(const Driver& driver, Quota& quota, std::uint64_t bytes)
      : driver_(driver), quota_(quota), bytes_(bytes) {}

  /// `make` makes a stream in the context; CUDA_ERROR_OUT_OF_MEMORY when the quota has no room for
  /// it.
  CUresult make(CUcontext context, CUstream* stream, const std::function<CUresult()>& make);

  /// Destroys the stream. One with unfinished work stays, charged, until that work has ended: the
  /// driver would keep its memory for so long. `captured`: the driver answers nothing about it.
  CUresult destroy(CUstream stream, bool captured);
  /// The context has ended, with its streams.
  void ended(CUcontext context);

 private:
  struct Context {
    std::uint64_t live = 0;
    std::uint64_t charged = 0;     ///< the most that lived at one time
    std::vector<CUstream> ending;  ///< that are destroyed when their work has ended
  };

  void destroyIdle(CUcontext context, Context& counted) const;

  const Driver& driver_;
  Quota& quota_;
  const std::uint64_t bytes_;
  std::mutex mutex_;
  std::map<CUcontext, Context> contexts_;
  std::unordered_map<CUstream, CUcontext> streams_;
};

}  // namespace worker
