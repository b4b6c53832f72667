#!/usr/bin/env python3
"""Prints what kernels cost on the simulated GPU, beside the same loops in C++ on one core.

  loops.py                     milliseconds of this build and of g++ -O3 -march=native
  loops.py --before LIBRARY    also of another build's libsimulator-cuda.so.1, in turns
  loops.py --instructions      host instructions (valgrind's callgrind) instead of times; both
                               without AVX-512, which valgrind lacks

Needs nvcc (CUDA_HOME), g++ and the built simulator. Each kernel computes what its loop computes.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parents[2] / 'build/release/native/simulator/libsimulator-cuda.so.1'
KERNELS = ['arithmetic', 'product', 'sort', 'scan', 'stencil']
ROUNDS = 3
RUNS = 5


def build(directory, architecture):
    home = os.environ.get('CUDA_HOME')
    if not home:
        sys.exit('CUDA_HOME must name a CUDA toolkit')
    ptx = directory / 'loops.ptx'
    program = directory / 'loops'
    nvcc = [f'{home}/bin/nvcc', '-ptx', '-O3', '-std=c++17', '-arch=compute_80']
    subprocess.run([*nvcc, '-o', ptx, HERE / 'loops.cu'], check=True)
    cxx = ['g++', '-O3', f'-march={architecture}', '-std=c++20', '-o', program]
    subprocess.run([*cxx, HERE / 'loops.cpp', '-ldl'], check=True)
    return program, ptx


def run(command):
    environment = {**os.environ, 'NVIDIA_VIRTUAL_SIMULATOR_THREADS': '1'}
    return subprocess.run(
        [str(word) for word in command],
        env=environment,
        check=True,
        text=True,
        capture_output=True,
    )


def milliseconds(program, ptx, library, kernel):
    return float(run([program, library, ptx, kernel, RUNS, 'check']).stdout)


def instructions(program, ptx, library, kernel):
    """Millions of one run, without those of a process that runs no kernel."""

    def count(runs):
        valgrind = ['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null']
        output = run([*valgrind, program, library, ptx, kernel, runs]).stderr
        return int(re.search(r'Collected : (\d+)', output).group(1))

    return (count(1) - count(0)) / 1e6


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('--before', type=Path)
    parser.add_argument('--instructions', action='store_true')
    arguments = parser.parse_args()
    measure = instructions if arguments.instructions else milliseconds
    architecture = 'x86-64-v3' if arguments.instructions else 'native'
    rounds = 1 if arguments.instructions else ROUNDS
    columns = {'simulated': LIBRARY, 'C++': 'host'}
    if arguments.before:
        columns['before'] = arguments.before
    unit = 'million instructions' if arguments.instructions else 'ms on one core'
    print('kernel, ' + unit, *columns, 'simulated/C++', 'simulated/before', sep='\t')
    with tempfile.TemporaryDirectory() as directory:
        program, ptx = build(Path(directory), architecture)
        for kernel in KERNELS:
            best = dict.fromkeys(columns, float('inf'))
            for _ in range(rounds):
                for name, library in columns.items():
                    best[name] = min(best[name], measure(program, ptx, library, kernel))
            ratios = [best['simulated'] / best['C++']]
            if arguments.before:
                ratios.append(best['simulated'] / best['before'])
            values = [f'{value:.3f}' for value in [*best.values(), *ratios]]
            print(kernel, *values, sep='\t', flush=True)


if __name__ == '__main__':
    main()
