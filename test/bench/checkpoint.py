#!/usr/bin/env python3
"""Writes programs to files and continues them: how long that takes, and whether they are right.

  checkpoint.py --build DIR --json FILE [--sizes GIB,...] [--backend simulated]

Needs python3, nvcc, node, the built tree and CRIU; for the frameworks PyTorch. With a simulated
GPU, the frameworks are left out.
"""

import json
import shutil
import statistics
import sys
import tempfile
import time

from h200 import argument_parser, machine
from sharing import Node
from suspend import Keeper, build, compare_runs, conclude

FRAMEWORKS = ['resnet50_train', 'decoder_graphs']
ROUNDS = 3


def write_and_continue(node, name):
    """The seconds that both took."""
    place = tempfile.mkdtemp(prefix='checkpoint-')
    shutil.rmtree(place)
    times = []
    for command, *names in (['checkpoint', name], ['restore']):
        begun = time.monotonic()
        node.command(command, '--state', node.state, *names, place)
        times.append(time.monotonic() - begun)
    shutil.rmtree(place, ignore_errors=True)
    return times


def measure_size(node, directory, gib):
    name = f'keep-{gib}'
    environment = node.allocate(['--name', name, '--memory', f'{int((gib + 2) * 1024)}MiB'])
    keeper = Keeper(node, directory, environment, gib)
    times, wrong = [], 0
    for _ in range(ROUNDS):
        times.append(write_and_continue(node, name))
        keeper.ask()
        wrong += keeper.read()['wrong']
    keeper.close(node, name)
    out, back = zip(*times, strict=True)
    return {
        'gib': gib,
        'wrong': wrong,
        'out': statistics.median(out),
        'in': statistics.median(back),
        'all': {'out': out, 'in': back},
    }


def measure_framework(node, name):
    """Compares runs that are in a file meanwhile with one that is not."""

    def disturb():
        write_and_continue(node, name)
        return True

    return compare_runs(node, name, ROUNDS, disturb)


def main():
    parser = argument_parser(__doc__)
    parser.add_argument('--sizes', default='1,8')
    options = parser.parse_args()
    directory = options.build.resolve()
    build(directory)
    simulated = options.backend == 'simulated'
    outcome = {'machine': None if simulated else machine(), 'sizes': [], 'frameworks': []}
    node = Node(options.backend, '--huge-pages', 'true', '--host-memory', '40GiB')
    try:
        for gib in map(float, options.sizes.split(',')):
            outcome['sizes'].append(measure_size(node, directory, gib))
            print(json.dumps(outcome['sizes'][-1]), flush=True)
        for name in [] if simulated else FRAMEWORKS:
            outcome['frameworks'].append(measure_framework(node, name))
            print(json.dumps(outcome['frameworks'][-1]), flush=True)
    finally:
        node.close()
    return conclude(outcome, options.json)


if __name__ == '__main__':
    sys.exit(main())
