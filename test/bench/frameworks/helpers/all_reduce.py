"""The mean over two GPUs by NCCL, timed"""

import torch
import torch.distributed as distributed

from helpers.ranks import spawn
from helpers.report import digest, report, timed

RANKS = 2


def mean(rank, ranks, elements, repeat):
    values = torch.arange(elements, dtype=torch.float32, device='cuda') * (rank + 1)

    def work():
        for _ in range(repeat):
            distributed.all_reduce(values, distributed.ReduceOp.AVG)
        torch.cuda.synchronize()

    work()
    _, times = timed(work)
    if rank == 0:
        report(times, mean=digest(values))


def main(elements, repeat):
    """Times `repeat` reductions of so many floats."""
    spawn(mean, RANKS, elements, repeat)
