// The native parts that run on a node: their build targets, and their places in the layout of
// NVIDIA_VIRTUAL_BUILD.

/** Parts that need the C library of the node or of a container: they are built for an old one. */
export const PORTABLE_PARTS = {
  'interposer/libcuda.so.1': 'lib/libcuda.so.1',
  'interposer/libnvidia-ml.so.1': 'lib/libnvidia-ml.so.1',
  'interposer/loader/libcuda.so': 'container/libcuda.so',
  'native/worker/nvidia-virtual-worker': 'nvidia-virtual-worker',
  'native/arbiter/nvidia-virtual-arbiter': 'nvidia-virtual-arbiter',
  'native/addon/nvidia-virtual.node': 'nvidia-virtual.node',
};

/** Programs that are linked statically, and the simulated driver. */
export const ORDINARY_PARTS = {
  'native/arena/nvidia-virtual-arena': 'nvidia-virtual-arena',
  'native/closer/nvidia-virtual-closer': 'nvidia-virtual-closer',
  'native/keeper/nvidia-virtual-keeper': 'nvidia-virtual-keeper',
  'native/launcher/nvidia-virtual-launcher': 'nvidia-virtual-launcher',
  'native/simulator/libsimulator-cuda.so.1': 'libsimulator-cuda.so.1',
  'native/simulator/libsimulator-nvml.so.1': 'libsimulator-nvml.so.1',
};
