"""CUDA tensors and events shared between processes by torch.multiprocessing"""

import torch
import torch.multiprocessing as multiprocessing

from helpers.report import digest, report


def child(inbox, outbox):
    tensor, event = inbox.get()
    event.wait()
    tensor.mul_(3)
    torch.cuda.synchronize()
    made = torch.arange(1000, device='cuda').square()
    outbox.put(made)
    inbox.get()  # keeps `made` alive


if __name__ == '__main__':
    context = multiprocessing.get_context('spawn')
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(inbox, outbox))
    process.start()
    tensor = torch.arange(1 << 20, dtype=torch.float32, device='cuda')
    event = torch.cuda.Event(interprocess=True)
    tensor.add_(1)
    event.record()
    inbox.put((tensor, event))
    made = outbox.get(timeout=60)
    results = {'changed_by_child': digest(tensor), 'made_by_child': digest(made)}
    del made
    inbox.put(None)
    process.join(timeout=30)
    report(**results, status=process.exitcode)
