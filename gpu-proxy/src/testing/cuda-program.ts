/**
 * A small CUDA program for tests: Python calls the driver API of the libcuda.so.1 that the loader
 * finds, as any program would. `alloc(bytes)` and `result(name, ...)` return CUDA's result; every
 * other call must succeed.
 */
const PREAMBLE = `
import ctypes, os, signal, subprocess, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def result(name, *arguments): return getattr(cuda, name)(*arguments)
def must(name, *arguments):
    status = result(name, *arguments)
    if status != 0: sys.exit(f"{name} failed with {status}")
def start():
    must("cuInit", 0)
    context = ctypes.c_void_p()
    must("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    must("cuCtxSetCurrent", context)
def alloc(size):
    return result("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size))
def memory():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    must("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value
def say(*words): print(*words, flush=True)
MiB = 1 << 20
`;

/** The command line that runs the program. */
export function cudaProgram(body: string): string[] {
  return ['python3', '-c', `${PREAMBLE}\n${body}`];
}
