#!/usr/bin/env python3
"""Suspends programs on a GPU: how long their memory takes out and in, and whether it is right.

  suspend.py --build DIR --json FILE [--sizes GIB,GIB] [--cycles N] [--backend simulated]

Needs python3, nvcc, node and the built tree; for the frameworks PyTorch. With a simulated GPU,
sizes are small (`--sizes 0.25`), and the frameworks are left out.
"""

import json
import re
import select
import statistics
import subprocess
import sys
import time

from h200 import HERE, argument_parser, json_lines, machine, record
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


def remove(node, name):
    """Waits until an allocation whose program has ended is gone."""
    node.command('drain', '--state', node.state, name)
    while name in node.command('ls', '--state', node.state):
        time.sleep(0.2)


class Keeper:
    """A program that holds so many GiB."""

    def __init__(self, node, directory, environment, gib, times=1):
        self.process = subprocess.Popen(
            [str(directory / 'keep'), str(int(gib * 1024)), str(times)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        node.programs.append(self.process)
        self.read()

    def ask(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        if line == '':
            raise RuntimeError('the program that holds memory has ended')
        return json.loads(line)

    def close(self, node, name):
        """Ends it, and removes its allocation."""
        self.process.stdin.close()
        self.process.wait(30)
        remove(node, name)


def seconds_of(sentence):
    """Of the move, as gpu-proxy prints it."""
    found = re.search(r' in ([0-9.]+) s', sentence)
    return float(found[1]) if found else None


def measure_size(node, directory, gib, cycles):
    """Cycles of one program: each suspends it, resumes it, and checks all words."""
    memory = f'{int((gib + 2) * 1024)}MiB'
    environment = node.allocate(['--name', f'keep-{gib}', '--memory', memory])
    keeper = Keeper(node, directory, environment, gib)
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
    keeper.close(node, f'keep-{gib}')
    return {
        'gib': gib,
        'wrong': wrong,
        'out, first': out[0],
        'out': statistics.median(out[1:]),
        'in, first': back[0],
        'in': statistics.median(back[1:]),
        'all': {'out': out, 'in': back, 'resume until checked': first},
    }


class FrameworkProgram:
    """Runs one of frameworks/ again and again in one process."""

    AGAIN = 'import runpy, sys\nfor _ in sys.stdin: runpy.run_path(sys.argv[1])'

    def __init__(self, node, name, environment):
        self.process = subprocess.Popen(
            [sys.executable, '-c', self.AGAIN, f'{name}.py'],
            cwd=HERE / 'frameworks', env={**environment, 'PYTHONPATH': '.'},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        node.programs.append(self.process)

    def run(self, meanwhile=lambda: None):
        """The results of a run; calls `meanwhile` until they come."""
        self.process.stdin.write(b'\n')
        self.process.stdin.flush()
        while not select.select([self.process.stdout], [], [], 0.1)[0]:
            meanwhile()
        found = json_lines(self.process.stdout.readline().decode())
        return found[0]['results']

    def close(self):
        self.process.stdin.close()
        self.process.wait(SECONDS)


def measure_framework(node, name, cycles):
    """Compares runs that are suspended again and again with one that is not."""

    def suspend():
        left = node.command('suspend', '--state', node.state, name)
        node.command('resume', '--state', node.state, name)
        return seconds_of(left) is not None  # else it had no memory

    return compare_runs(node, name, cycles, suspend)


def compare_runs(node, name, cycles, disturb, options=()):
    """Calls `disturb` until it has said `cycles` times that it has done something."""
    environment = node.allocate(['--name', name, '--memory', '24GiB', *options])
    program = FrameworkProgram(node, name, environment)
    undisturbed = program.run()
    done = runs = 0

    def meanwhile():
        nonlocal done
        try:
            done += disturb()
        except RuntimeError as refused:
            print(refused, file=sys.stderr)

    equal = True
    while done < cycles:
        equal = program.run(meanwhile) == undisturbed and equal
        runs += 1
    program.close()
    remove(node, name)
    return {'name': name, 'times': done, 'runs': runs, 'equal': equal}


def conclude(outcome, file):
    """Writes the file. The exit status: 0 if all programs computed right."""
    file.write_text(json.dumps(outcome, indent=1) + '\n')
    right = all(one['wrong'] == 0 for one in outcome['sizes'])
    return 0 if right and all(one['equal'] for one in outcome['frameworks']) else 1


def main():
    parser = argument_parser(__doc__)
    parser.add_argument('--sizes', default='8,40')
    parser.add_argument('--cycles', type=int, default=6)
    options = parser.parse_args()
    directory = options.build.resolve()
    build(directory)
    simulated = options.backend == 'simulated'
    outcome = {'machine': None if simulated else machine(), 'sizes': [], 'frameworks': []}
    most = max(map(float, options.sizes.split(',')))
    memory = f'{int(most * 1024) + 2048}MiB'
    node = Node(
        options.backend, '--warm-workers', '1', '--huge-pages', 'true', '--host-memory', memory
    )
    try:
        for gib in map(float, options.sizes.split(',')):
            outcome['sizes'].append(measure_size(node, directory, gib, options.cycles))
            print(json.dumps(outcome['sizes'][-1]), flush=True)
        for name in [] if simulated else FRAMEWORKS:
            outcome['frameworks'].append(measure_framework(node, name, 20))
            print(json.dumps(outcome['frameworks'][-1]), flush=True)
    finally:
        node.close()
    return conclude(outcome, options.json)


if __name__ == '__main__':
    sys.exit(main())
