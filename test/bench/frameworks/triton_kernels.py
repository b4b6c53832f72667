"""Triton: a softmax, a matrix product and atomic additions"""

import os
import tempfile

os.environ['TRITON_CACHE_DIR'] = tempfile.mkdtemp()  # nothing is taken from an earlier run

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
import triton
import triton.language as tl


@triton.jit
def softmax(source, result, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(source + row * columns + at, mask=at < columns, other=-float('inf'))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(result + row * columns + at, e / tl.sum(e, axis=0), mask=at < columns)


@triton.jit
def multiply(a, b, c, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, n, BLOCK):
        inner = k + tl.arange(0, BLOCK)
        left = tl.load(a + rows[:, None] * n + inner[None, :])
        right = tl.load(b + inner[:, None] * n + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def count(values, counts, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.load(values + at, mask=at < size, other=0)
    tl.atomic_add(counts + bins, 1, mask=at < size)


x = torch.randn(300, 1000, device='cuda')
soft = torch.empty_like(x)
softmax[(300,)](x, soft, 1000, BLOCK=1024)
torch.testing.assert_close(soft, torch.softmax(x, dim=-1))

a, b = (torch.randn(512, 512, device='cuda', dtype=torch.float16) for _ in range(2))
c = torch.empty(512, 512, device='cuda', dtype=torch.float32)
multiply[(8, 8)](a, b, c, 512, BLOCK=64)
torch.testing.assert_close(c, (a.float() @ b.float()), rtol=1e-2, atol=1e-2)

values = torch.randint(0, 100, (100_000,), device='cuda', dtype=torch.int32)
counts = torch.zeros(100, device='cuda', dtype=torch.int32)
count[(triton.cdiv(100_000, 1024),)](values, counts, 100_000, BLOCK=1024)
assert counts.tolist() == torch.bincount(values.cpu(), minlength=100).tolist()
report(softmax=digest(soft), product=digest(c), counts=digest(counts))
