"""How frameworks look for GPUs through NVML, in the order of their own code."""

import ctypes
import os

import pynvml

# PyTorch: torch.cuda.device_count() and PYTORCH_NVML_BASED_CUDA_CHECK=1.
nvml = ctypes.CDLL('libnvidia-ml.so.1')
count, device = ctypes.c_int(-1), ctypes.c_void_p()
uuid = ctypes.create_string_buffer(96)
assert nvml.nvmlInit() == 0
assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetUUID(device, uuid, 96) == 0
print('torch', count.value, uuid.raw.rstrip(b'\0').decode('ascii'))

# PyTorch's allocator requires these, and lists the processes when memory runs out.
for name in [
    'nvmlInit_v2',
    'nvmlDeviceGetHandleByPciBusId_v2',
    'nvmlDeviceGetNvLinkRemoteDeviceType',
    'nvmlDeviceGetNvLinkRemotePciInfo_v2',
    'nvmlDeviceGetComputeRunningProcesses',
    'nvmlSystemGetCudaDriverVersion_v2',
]:
    assert hasattr(nvml, name), name

# vLLM: the platform, its capability, name and memory; whether all GPUs are linked.
pynvml.nvmlInit()
assert pynvml.nvmlDeviceGetCount() > 0
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
second = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
assert (memory.total, memory.used) == (second.total, second.used)
name = pynvml.nvmlDeviceGetName(handle)
print('vllm', name, f'{major}.{minor}', memory.total >> 20, memory.used >> 20)
pids = [each.pid for each in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
print('processes', pids == [os.getppid()])

# JAX 0.10 on CUDA 13, as traced: it finds its GPU by the address that CUDA says. Then it asks for
# the bandwidth to the host, and how GPUs are connected.
same = pynvml.nvmlDeviceGetHandleByPciBusId(pynvml.nvmlDeviceGetPciInfo(handle).busId)
assert pynvml.nvmlDeviceGetIndex(same) == 0
link = pynvml.nvmlDeviceGetCurrPcieLinkGeneration(same), pynvml.nvmlDeviceGetCurrPcieLinkWidth(same)
try:
    pynvml.nvmlDeviceGetNvLinkState(same, 0)
except pynvml.NVMLError_NotSupported:
    fabric = pynvml.c_nvmlGpuFabricInfo_v2_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(same, ctypes.byref(fabric))
    driver = pynvml.nvmlSystemGetDriverVersion()
    print('jax', driver, *link, 'no NVLink, fabric', fabric.state)
pynvml.nvmlShutdown()

# What changes the device is refused.
pynvml.nvmlInit()
try:
    pynvml.nvmlDeviceSetPowerManagementLimit(handle, 100_000)
except pynvml.NVMLError_NoPermission:
    print('setter refused')
