// The image that module_load loads.
#define KERNEL(number)                                                             \
  extern "C" __global__ void kernel##number(float* x, int n) {                     \
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = x[i] * number + 0.5f; \
  }

KERNEL(0);
KERNEL(1);
KERNEL(2);
KERNEL(3);
KERNEL(4);
KERNEL(5);
KERNEL(6);
KERNEL(7);
KERNEL(8);
KERNEL(9);
KERNEL(10);
KERNEL(11);
KERNEL(12);
KERNEL(13);
KERNEL(14);
KERNEL(15);
KERNEL(16);
KERNEL(17);
KERNEL(18);
KERNEL(19);
