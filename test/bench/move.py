#!/usr/bin/env python3
"""Moves programs between two GPUs: how long that takes, and whether they compute right.

  move.py --build DIR --json FILE [--sizes GIB,GIB] [--moves N]

Needs python3, nvcc, node, the built tree, PyTorch, and two GPUs of one model.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from h200 import machine
from sharing import Node
from suspend import Keeper, build, compare_runs, conclude

FRAMEWORKS = ['resnet50_train', 'decoder_graphs']


class Mover:
    """Moves an allocation to the other GPU at each call."""

    def __init__(self, node, name):
        self.node, self.name, self.gpu, self.seconds = node, name, 0, []

    def __call__(self):
        begun = time.monotonic()
        self.node.command(
            'move', '--state', self.node.state, self.name, '--gpu', str(1 - self.gpu)
        )
        self.gpu = 1 - self.gpu
        self.seconds.append(time.monotonic() - begun)
        return True


def measure_size(node, directory, gib, moves):
    name = f'keep-{gib}'
    environment = node.allocate(
        ['--name', name, '--memory', f'{int((gib + 2) * 1024)}MiB', '--gpu', '0']
    )
    keeper, mover, wrong = Keeper(node, directory, environment, gib), Mover(node, name), 0
    for _ in range(moves):
        mover()
        keeper.ask()
        wrong += keeper.read()['wrong']
    keeper.close(node, name)
    return {
        'gib': gib,
        'first move': mover.seconds[0],
        'move': statistics.median(mover.seconds[1:]),
        'all': mover.seconds,
        'wrong': wrong,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', type=Path, required=True)
    parser.add_argument('--json', type=Path, required=True)
    parser.add_argument('--sizes', default='1,8')
    parser.add_argument('--moves', type=int, default=6)
    options = parser.parse_args()
    directory = options.build.resolve()
    build(directory)
    outcome = {'machine': machine(), 'sizes': [], 'frameworks': []}
    # Workers have users of their own, as on Kubernetes nodes.
    settings = ['--movable', 'true', '--huge-pages', 'true', '--worker-uids', '20000-20009']
    node = Node('real', *settings, '--host-memory', '40GiB')
    try:
        for gib in map(float, options.sizes.split(',')):
            outcome['sizes'].append(measure_size(node, directory, gib, options.moves))
            print(json.dumps(outcome['sizes'][-1]), flush=True)
        for name in FRAMEWORKS:
            mover = Mover(node, name)
            compared = compare_runs(node, name, options.moves, mover, ['--gpu', '0'])
            outcome['frameworks'].append(compared)
            print(json.dumps(outcome['frameworks'][-1]), mover.seconds, flush=True)
    finally:
        print((Path(node.state) / 'log').read_text()[-4000:], file=sys.stderr)
        node.close()
    return conclude(outcome, options.json)


if __name__ == '__main__':
    sys.exit(main())
