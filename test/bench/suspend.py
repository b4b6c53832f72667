#!/usr/bin/env python3
"""Suspends programs on a GPU: how long their memory takes out and in, and whether it is right.

  suspend.py --build DIR --json FILE [--sizes GIB,GIB] [--cycles N] [--backend simulated]

Needs python3, nvcc, node and the built tree; for the frameworks PyTorch. With a simulated GPU,
sizes are small (`--sizes 0.25`), and the frameworks are left out.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from h200 import HERE, json_lines, machine, record
from sharing import Node

FRAMEWORKS = ['resnet50_train', 'decoder_graphs', 'torch_cuda_graph']
SECONDS = 300


def build(directory):
    directory.mkdir(parents=True, exist_ok=True)
    nvcc = record.find_nvcc()
    flags = ['-std=c++20', '-O2', '-arch=sm_90', f'-L{record.runtime_directory(nvcc)}']
    subprocess.run(
        [str(nvcc), *flags, '-o', str(directory / 'keep'), 'keep.cu'],
        cwd=HERE / 'programs', check=True,
    )


class Keeper:
    """A program that holds so many GiB."""

    def __init__(self, directory, environment, gib):
        self.process = subprocess.Popen(
            [str(directory / 'keep'), str(int(gib * 1024))],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.read()

    def ask(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        if line == '':
            raise RuntimeError('the program that holds memory has ended')
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def seconds_of(sentence):
    """Of the move, as gpu-proxy prints it."""
    found = re.search(r' in ([0-9.]+) s', sentence)
    return float(found[1]) if found else None


def measure_size(node, directory, gib, cycles):
    """Cycles of one program: each suspends it, resumes it, and checks all words."""
    memory = f'{int((gib + 2) * 1024)}MiB'
    environment = node.allocate(['--name', f'keep-{gib}', '--memory', memory])
    keeper = Keeper(directory, environment, gib)
    out, back, first, wrong = [], [], [], 0
    for _ in range(cycles):
        out.append(seconds_of(node.command('suspend', '--state', node.state, f'keep-{gib}')))
        keeper.ask()
        time.sleep(0.2)  # its call waits
        begun = time.monotonic()
        back.append(seconds_of(node.command('resume', '--state', node.state, f'keep-{gib}')))
        answer = keeper.read()
        first.append(time.monotonic() - begun)
        wrong += answer['wrong']
    keeper.close()
    return {
        'gib': gib,
        'wrong': wrong,
        'out, first': out[0],
        'out': statistics.median(out[1:]),
        'in, first': back[0],
        'in': statistics.median(back[1:]),
        'all': {'out': out, 'in': back, 'resume until checked': first},
    }


def measure_framework(node, name, cycles):
    """Compares a run that is suspended again and again with one that is not."""
    results, suspensions = [], 0
    for disturbed in (False, True):
        title = f'{name}-{disturbed}'
        environment = node.allocate(['--name', title, '--memory', '24GiB'])
        program = subprocess.Popen(
            [sys.executable, f'{name}.py'],
            cwd=HERE / 'frameworks', env=environment, stdout=subprocess.PIPE, text=True,
        )
        while disturbed and program.poll() is None and suspensions < cycles:
            time.sleep(0.5)
            try:
                node.command('suspend', '--state', node.state, title)
            except RuntimeError as refused:
                print(refused, file=sys.stderr)
                continue
            node.command('resume', '--state', node.state, title)
            suspensions += 1
        output, _ = program.communicate(timeout=SECONDS)
        results.append(json_lines(output)[-1]['results'])
    return {'name': name, 'suspensions': suspensions, 'equal': results[0] == results[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', type=Path, required=True)
    parser.add_argument('--json', type=Path, required=True)
    parser.add_argument('--sizes', default='8,40')
    parser.add_argument('--cycles', type=int, default=6)
    parser.add_argument('--backend', default='real')
    options = parser.parse_args()
    directory = options.build.resolve()
    build(directory)
    simulated = options.backend == 'simulated'
    outcome = {'machine': None if simulated else machine(), 'sizes': [], 'frameworks': []}
    node = Node(options.backend, '--warm-workers', '1')
    try:
        for gib in map(float, options.sizes.split(',')):
            outcome['sizes'].append(measure_size(node, directory, gib, options.cycles))
            print(json.dumps(outcome['sizes'][-1]), flush=True)
        for name in [] if simulated else FRAMEWORKS:
            outcome['frameworks'].append(measure_framework(node, name, 20))
            print(json.dumps(outcome['frameworks'][-1]), flush=True)
    finally:
        node.close()
    options.json.write_text(json.dumps(outcome, indent=1) + '\n')
    right = all(one['wrong'] == 0 for one in outcome['sizes'])
    return 0 if right and all(one['equal'] for one in outcome['frameworks']) else 1


if __name__ == '__main__':
    sys.exit(main())
