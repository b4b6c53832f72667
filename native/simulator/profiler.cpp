// Calls of the profiler: they succeed without effect.
#include "native/simulator/driver_call.h"

using namespace simulator;

DRIVER_CALL cuProfilerStart(void) {
  return inContext([](Context&) { return CUDA_SUCCESS; });
}

DRIVER_CALL cuProfilerStop(void) {
  return inContext([](Context&) { return CUDA_SUCCESS; });
}
