"""PyTorch on several streams and threads: copies beside kernels, events, record_stream"""

import threading

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
source = torch.randn(16, 1 << 20).pin_memory()
results = [None] * 4


def work(index):
    copies, kernels = torch.cuda.Stream(), torch.cuda.Stream()
    total = torch.zeros(1 << 20, device='cuda')
    kernels.wait_stream(torch.cuda.current_stream())
    for row in range(index, 16, 4):
        with torch.cuda.stream(copies):
            part = source[row].to('cuda', non_blocking=True)
        kernels.wait_stream(copies)
        part.record_stream(kernels)
        with torch.cuda.stream(kernels):
            total += part * (row + 1)
    end = kernels.record_event()
    end.synchronize()
    assert end.query() and kernels.query()
    results[index] = digest(total)


threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
report(totals=results)
