"""DistributedDataParallel and collectives with NCCL"""
# run: alone

import os
import tempfile

os.environ.setdefault('NCCL_NVLS_ENABLE', '0')

import torch
import torch.distributed as distributed

from report import deterministic_torch, digest, report


def rank(index, ranks, file):
    deterministic_torch()
    torch.cuda.set_device(index)
    distributed.init_process_group(
        'nccl', init_method=f'file://{file}', rank=index, world_size=ranks,
        device_id=torch.device('cuda', index),
    )
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    parallel = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[index])
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    x = torch.randn(64, 128, generator=torch.Generator().manual_seed(index)).cuda()
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = parallel(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    sums = torch.arange(1 << 20, dtype=torch.float32, device='cuda') * (index + 1)
    distributed.all_reduce(sums)
    parts = [torch.empty(4, device='cuda') for _ in range(ranks)]
    distributed.all_gather(parts, torch.full((4,), float(index), device='cuda'))
    distributed.barrier()
    torch.cuda.synchronize()
    if index == 0:
        report(
            losses=digest(torch.stack(losses)),
            weights=digest(model[0].weight),
            sums=digest(sums),
            gathered=[part.tolist() for part in parts],
        )
    distributed.destroy_process_group()


if __name__ == '__main__':
    ranks = min(torch.cuda.device_count(), 2)
    file = os.path.join(tempfile.mkdtemp(), 'store')
    torch.multiprocessing.spawn(rank, args=(ranks, file), nprocs=ranks)
