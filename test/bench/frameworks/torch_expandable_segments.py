"""PyTorch's allocator with expandable_segments: one growing reservation"""

import os

os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
MIB = 1 << 20
sums = []
for size in (3, 40, 100, 250, 500):
    block = torch.arange(size * MIB // 4, dtype=torch.int32, device='cuda')
    sums.append(int(block.sum(dtype=torch.int64)))
    del block
segments = [s for s in torch.cuda.memory_snapshot() if s['is_expandable']]
large = [s for s in segments if s['segment_type'] == 'large']
held = torch.cuda.memory_reserved()
torch.cuda.empty_cache()
x = torch.randn(1000, 1000, device='cuda')
report(
    sums=sums,
    large_segments=len(large),
    reserved=held // MIB,
    after_empty_cache=torch.cuda.memory_reserved() // MIB,
    product=digest(x @ x),
)
