"""As vLLM finds its platform: NVML through nvidia-ml-py, and PyTorch's check through NVML"""

import os

os.environ['PYTORCH_NVML_BASED_CUDA_CHECK'] = '1'

import pynvml
import torch

from helpers.report import report

available = torch.cuda.is_available()
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
memory = pynvml.nvmlDeviceGetMemoryInfo(device)
total = torch.cuda.get_device_properties(0).total_memory
report(
    available=available,
    count=pynvml.nvmlDeviceGetCount() == torch.cuda.device_count(),
    name=pynvml.nvmlDeviceGetName(device),
    same_name=pynvml.nvmlDeviceGetName(device) == torch.cuda.get_device_name(0),
    uuid=pynvml.nvmlDeviceGetUUID(device),
    capability=list(pynvml.nvmlDeviceGetCudaComputeCapability(device)),
    # NVML counts the memory that the driver reserves, too.
    total_is_that_of_cuda=0 <= memory.total - total < 2 << 30,
    sum_is_total=memory.used + memory.free <= memory.total,
)
pynvml.nvmlShutdown()
