"""PyTorch: memory_stats, out of memory at the quota, and recovery"""
# run: alone memory=8GiB

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
GIB = 1 << 30
x = torch.randn(1024, 1024, device='cuda')
before = digest(x @ x)
_, total = torch.cuda.mem_get_info()
messages = []


def refused(size):
    try:
        torch.empty(size, dtype=torch.uint8, device='cuda')
    except torch.OutOfMemoryError as error:
        messages.append(str(error).startswith('CUDA out of memory. Tried to allocate'))
        return True
    return False


larger_than_all = refused(total + GIB)
blocks = []
while len(blocks) <= total // GIB:
    try:
        blocks.append(torch.empty(GIB, dtype=torch.uint8, device='cuda').fill_(1))
    except torch.OutOfMemoryError:
        break
# The rest belongs to the context and to rounding.
full = total - 3 * GIB <= len(blocks) * GIB <= total
still_right = digest(x @ x) == before
blocks.clear()
torch.cuda.empty_cache()
half = torch.empty(total // 2, dtype=torch.uint8, device='cuda')
statistics = torch.cuda.memory_stats()
report(
    larger_than_all=larger_than_all,
    messages=messages,
    full=full,
    still_right=still_right,
    product=before,
    after_recovery=digest(x @ x),
    failures=statistics['num_ooms'],
    reserved_at_least_half=statistics['reserved_bytes.all.current'] >= total // 2,
)
