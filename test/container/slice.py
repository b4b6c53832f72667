"""Uses the GPU through the driver API only. Prints what it sees as JSON.

With STAY in its environment, it reads its memory again after SIGUSR1.
"""

import ctypes
import json
import os
import signal
import sys

cuda = ctypes.CDLL("libcuda.so.1")
MiB = 1 << 20
# Before the test can send it.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


def must(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        sys.exit(f"{name} failed with {status}")


def allocate(size):
    pointer = ctypes.c_uint64()
    return cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)), pointer


must("cuInit", 0)
count, total, free, device_total = (
    ctypes.c_int(),
    ctypes.c_size_t(),
    ctypes.c_size_t(),
    ctypes.c_size_t(),
)
must("cuDeviceGetCount", ctypes.byref(count))
context = ctypes.c_void_p()
must("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
must("cuCtxSetCurrent", context)
must("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
must("cuDeviceTotalMem_v2", ctypes.byref(device_total), 0)

status, pointer = allocate(MiB)
sent = (ctypes.c_ubyte * MiB)(*([1, 2, 3, 5] * (MiB // 4)))
received = (ctypes.c_ubyte * MiB)()
must("cuMemcpyHtoD_v2", pointer, sent, ctypes.c_size_t(MiB))
beyond, _ = allocate(total.value + MiB)
# The test inspects the worker meanwhile, suspends it, and writes it to files.
if "STAY" in os.environ:
    signal.sigwait({signal.SIGUSR1})
must("cuMemcpyDtoH_v2", received, pointer, ctypes.c_size_t(MiB))
json.dump(
    {
        "devices": count.value,
        "total": total.value,
        "deviceTotal": device_total.value,
        "copied": bytes(sent) == bytes(received),
        "beyond": beyond,
    },
    sys.stdout,
)
