"""Prints the result of a framework program: a JSON object with digests and times of the work."""

import hashlib
import json
import os
import statistics
import sys
import time
from pathlib import Path

PACKAGES = [
    *['torch', 'torchvision', 'transformers', 'triton', 'jax', 'cupy'],
    *['numba_cuda', 'pynvml', 'llama_cpp'],
]


def digest(data):
    """Digest of the bytes of a NumPy array, an array-like object or a tensor."""
    import numpy
    if hasattr(data, 'detach'):
        data = data.detach().cpu()
        data = (data.float() if str(data.dtype) == 'torch.bfloat16' else data).numpy()
    array = numpy.ascontiguousarray(data)
    return hashlib.sha256(
        str(array.dtype).encode() + str(array.shape).encode() + array.tobytes()
    ).hexdigest()[:16]


def timed(work, repeat=5):
    """The last result, and the seconds of each run. `work` synchronizes with the GPU.

    If FRAMEWORK_TURNS is set, it is the number of runs, and each waits for its turn
    (../../turns.py).
    """
    turns = int(os.environ.get('FRAMEWORK_TURNS', 0))
    times = []
    for _ in range(turns or repeat):
        if turns:
            wait_for_turn()
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    if turns:
        wait_for_turn()  # what follows must not disturb the turns of others
    return result, times


def wait_for_turn():
    print('ready', flush=True)
    sys.stdin.readline()


def processor_seconds():
    """Processor time of this process, and of the worker if it uses one, the only one here."""
    if 'NVIDIA_VIRTUAL_SOCKET' not in os.environ:
        return time.process_time()
    ticks = 0
    for stat in Path('/proc').glob('[0-9]*/stat'):
        try:
            text = stat.read_text()
        except OSError:
            continue  # the process has ended
        name, _, rest = text.partition('(')[2].rpartition(')')
        if name.startswith('nvidia-virtual'):
            ticks += sum(int(field) for field in rest.split()[11:13])
    return time.process_time() + ticks / 100


def age():
    """Seconds since this process began."""
    started = Path('/proc/self/stat').read_text().rpartition(')')[2].split()[19]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(started) / 100


def versions():
    return {
        name: str(sys.modules[name].__version__)
        for name in PACKAGES
        if hasattr(sys.modules.get(name), '__version__')
    }


def report(times=None, processor=None, **results):
    """`times`: of one work. `processor`: seconds for it. Both are optional and not compared."""
    line = {'results': results, 'versions': versions()}
    if times:
        line |= {'seconds': statistics.median(times), 'times': times}
    if processor is not None:
        line['processor'] = processor
    print(json.dumps(line), flush=True)


def deterministic_torch():
    import os
    os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'
    import torch
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    return torch
