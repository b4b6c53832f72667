"""Processes of torch.distributed with NCCL, each with a GPU of its own"""

import os
import tempfile

# NVLink SHARP needs multicast objects, which the product refuses.
os.environ.setdefault('NCCL_NVLS_ENABLE', '0')

import torch
import torch.distributed as distributed


def spawn(work, ranks, *arguments):
    """Runs work(rank, ranks, *arguments) in each process. `work` is a function of a module."""
    file = os.path.join(tempfile.mkdtemp(), 'store')
    torch.multiprocessing.spawn(run, args=(work, ranks, file, arguments), nprocs=ranks)


def run(rank, work, ranks, file, arguments):
    torch.cuda.set_device(rank)
    distributed.init_process_group(
        'nccl', init_method=f'file://{file}', rank=rank, world_size=ranks,
        device_id=torch.device('cuda', rank),
    )
    work(rank, ranks, *arguments)
    distributed.destroy_process_group()
