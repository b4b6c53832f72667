#include "native/worker/driver/session_environment.h"

namespace worker {

Environment sessionEnvironment(std::span<const std::byte> variables, const Options& options) {
  Environment environment =
      placed(driverEnvironment(variables, options.gpus, !options.cache.empty(), options.mps),
             options.places);
  if (options.simulatedState.empty()) environment.erase("NVIDIA_VIRTUAL_SIMULATOR_CHECK");
  return environment;
}

}  // namespace worker
