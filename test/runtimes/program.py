"""What a program with a shared libcudart does: program.py LIBCUDART [PTX_VERSION].

Registers a fat binary with PTX as compiled code does, allocates, copies, launches and copies back,
through functions that libcudart has had since CUDA 11. Prints one JSON object.
"""

import ctypes
import json
import struct
import sys

PTX = '''.version %s
.target sm_52
.address_size 64
.visible .entry add_one(.param .u64 data, .param .u32 count)
{
  .reg .pred %%p;
  .reg .b32 %%r<6>;
  .reg .b64 %%d<4>;
  ld.param.u64 %%d1, [data];
  ld.param.u32 %%r1, [count];
  mov.u32 %%r2, %%ctaid.x;
  mov.u32 %%r3, %%ntid.x;
  mov.u32 %%r4, %%tid.x;
  mad.lo.u32 %%r2, %%r2, %%r3, %%r4;
  setp.ge.u32 %%p, %%r2, %%r1;
  @%%p ret;
  cvta.to.global.u64 %%d1, %%d1;
  mul.wide.u32 %%d2, %%r2, 4;
  add.u64 %%d1, %%d1, %%d2;
  ld.global.u32 %%r5, [%%d1];
  add.u32 %%r5, %%r5, 1;
  st.global.u32 [%%d1], %%r5;
  ret;
}
'''
COUNT = 1000
TO_DEVICE, TO_HOST = 1, 2


class Dim3(ctypes.Structure):
    _fields_ = [('x', ctypes.c_uint), ('y', ctypes.c_uint), ('z', ctypes.c_uint)]


class Wrapper(ctypes.Structure):
    _fields_ = [
        ('magic', ctypes.c_uint),
        ('version', ctypes.c_uint),
        ('data', ctypes.c_void_p),
        ('objects', ctypes.c_void_p),
    ]


def fat_binary(ptx_version):
    text = (PTX % ptx_version).encode() + b'\0'
    text += b'\0' * (-len(text) % 8)
    host_is_linux_64_bit = 0x11
    entry = struct.pack(
        '<HHIQIIHHIIIQQQ',
        *(1, 0x101, 64, len(text), 0, 0),
        *(0, 0, 52, 0, 0, host_is_linux_64_bit, 0, 0),
    )
    body = entry + text
    return struct.pack('<IHHQ', 0xBA55ED50, 1, 16, len(body)) + body


class Runtime:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.cudaGetErrorName.restype = ctypes.c_char_p
        getattr(self.library, '__cudaRegisterFatBinary').restype = ctypes.c_void_p
        self.statuses = {}

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        self.statuses[name] = self.library.cudaGetErrorName(status).decode()
        return status

    def register(self, image, stub):
        self.image = ctypes.create_string_buffer(image, len(image))
        self.wrapper = Wrapper(0x466243B1, 1, ctypes.addressof(self.image), None)
        register_image, register_kernel, end = (
            getattr(self.library, f'__cudaRegister{what}')
            for what in ('FatBinary', 'Function', 'FatBinaryEnd')
        )
        handle = ctypes.c_void_p(register_image(ctypes.byref(self.wrapper)))
        register_kernel(handle, stub, b'add_one', b'add_one', -1, None, None, None, None, None)
        end(handle)


def compute(runtime, stub):
    """Whether the GPU computed the right values."""
    values = (ctypes.c_uint * COUNT)(*range(COUNT))
    size = ctypes.c_size_t(ctypes.sizeof(values))
    memory = ctypes.c_void_p()
    if runtime.call('cudaMalloc', ctypes.byref(memory), size) != 0:
        return False
    runtime.call('cudaMemcpy', memory, values, size, TO_DEVICE)
    count = ctypes.c_uint(COUNT)
    pointers = [ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in (memory, count)]
    parameters = (ctypes.c_void_p * 2)(*pointers)
    grid, block, no_shared = Dim3(4, 1, 1), Dim3(256, 1, 1), ctypes.c_size_t(0)
    runtime.call('cudaLaunchKernel', stub, grid, block, parameters, no_shared, None)
    runtime.call('cudaDeviceSynchronize')
    runtime.call('cudaMemcpy', values, memory, size, TO_HOST)
    runtime.call('cudaFree', memory)
    return list(values) == list(range(1, COUNT + 1))


def version(runtime, name):
    number = ctypes.c_int()
    runtime.call(name, ctypes.byref(number))
    return number.value


def main():
    runtime = Runtime(sys.argv[1])
    # Its address names the kernel, like that of the function that nvcc generates.
    stub = ctypes.cast(ctypes.create_string_buffer(1), ctypes.c_void_p)
    runtime.register(fat_binary(sys.argv[2] if len(sys.argv) > 2 else '6.0'), stub)
    count = ctypes.c_int()
    runtime.call('cudaGetDeviceCount', ctypes.byref(count))
    right = compute(runtime, stub)
    result = {
        'runtime': version(runtime, 'cudaRuntimeGetVersion'),
        'driver': version(runtime, 'cudaDriverGetVersion'),
        'devices': count.value,
        'right': right,
        'statuses': runtime.statuses,
    }
    print(json.dumps(result), flush=True)


if __name__ == '__main__':
    main()
