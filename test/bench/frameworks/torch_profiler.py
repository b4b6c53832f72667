"""torch.profiler: host activities, device activities, and device times by events"""

from collections import Counter

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
from torch.profiler import ProfilerActivity, profile

x = torch.randn(512, 512, device='cuda')


def work():
    return torch.relu(x @ x).sum()


def names(profiler):
    counts = Counter(event.name for event in profiler.events())
    return {name: count for name, count in sorted(counts.items()) if name.startswith('aten::')}


work()
with profile(activities=[ProfilerActivity.CPU]) as on_host:
    total = work()
# A GPU without CUPTI has no device activities; the host's are the same.
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as on_both:
    work()
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
work()
end.record()
end.synchronize()
report(
    total=digest(total),
    host=names(on_host),
    both=names(on_both),
    event_time_is_positive=start.elapsed_time(end) > 0,
)
