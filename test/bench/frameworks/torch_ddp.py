"""DistributedDataParallel and collectives with NCCL, on two GPUs where there are two"""
# run: alone

import torch
import torch.distributed as distributed

from helpers.ranks import spawn
from helpers.report import deterministic_torch, digest, report


def train(rank, ranks):
    deterministic_torch()
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    parallel = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    x = torch.randn(64, 128, generator=torch.Generator().manual_seed(rank)).cuda()
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = parallel(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    sums = torch.arange(1 << 20, dtype=torch.float32, device='cuda') * (rank + 1)
    distributed.all_reduce(sums)
    parts = [torch.empty(4, device='cuda') for _ in range(ranks)]
    distributed.all_gather(parts, torch.full((4,), float(rank), device='cuda'))
    distributed.barrier()
    torch.cuda.synchronize()
    if rank == 0:
        report(
            losses=digest(torch.stack(losses)),
            weights=digest(model[0].weight),
            sums=digest(sums),
            gathered=[part.tolist() for part in parts],
            ranks=ranks,
        )


if __name__ == '__main__':
    spawn(train, min(torch.cuda.device_count(), 2))
