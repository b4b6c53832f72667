"""numba-cuda: its own tests of the driver's functions and of kernels"""
# run: alone memory=64GiB
# Needs pytest-xdist, pytest-timeout and filecheck.

import os
import re
import subprocess
import sys
from pathlib import Path

import numba_cuda

from helpers.report import report

PROCESSES = 12
# The driver's functions, and kernels. Most other files only look at what the compiler makes.
KERNELS = [
    *['array', 'array_args', 'atomics', 'const_string', 'constmem', 'cooperative_groups'],
    *['cuda_array_interface', 'datetime', 'debug', 'device_array_capture', 'device_func'],
    *['errors', 'exception', 'forall', 'gufunc', 'idiv', 'intrinsics', 'ipc', 'laplace'],
    *['lineinfo', 'localmem', 'matmul', 'montecarlo', 'multithreads', 'nondet', 'print'],
    *['random', 'record_dtype', 'reduction', 'sm', 'sync', 'transpose', 'ufuncs', 'userexc'],
    *['vector_type', 'vectorize', 'warp_ops'],
]
SUITES = Path(__file__).parents[2] / 'suites'
OUTCOME = re.compile(r'^\[gw\d+\] \[ *\d+%\] (\w+) \S*?/tests/(.*?) *$', re.MULTILINE)

tests = Path(numba_cuda.__file__).parent / 'numba' / 'cuda' / 'tests'
options = [
    *['-v', '-n', str(PROCESSES), '--timeout', '60'],
    *['-p', 'no:cacheprovider', '-p', 'numba_plugin'],
    # Otherwise pytest would find the tests' own package `cuda` before NVIDIA's.
    *['--import-mode=importlib', '-o', 'consider_namespace_packages=true'],
]
files = [tests / 'cudapy' / f'test_{name}.py' for name in KERNELS]
output = subprocess.run(
    [sys.executable, '-m', 'pytest', *options, tests / 'cudadrv', *files],
    env=os.environ | {'PYTHONPATH': f"{SUITES}:{os.environ.get('PYTHONPATH', '')}"},
    stdout=subprocess.PIPE,
    text=True,
).stdout
report(**{test: outcome for outcome, test in OUTCOME.findall(output)})
