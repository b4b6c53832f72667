#!/usr/bin/env python3
"""Writes a program that holds memory of a GPU to files, and continues it.

  checkpoint.py --build DIR --json FILE [--sizes GIB,...] [--backend simulated]

Needs python3, nvcc, node, the built tree and CRIU. The program checks each word afterwards.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from h200 import machine
from sharing import Node
from suspend import Keeper, build

ROUNDS = 3


def measure_size(node, directory, gib):
    name = f'keep-{gib}'
    environment = node.allocate(['--name', name, '--memory', f'{int((gib + 2) * 1024)}MiB'])
    keeper = Keeper(node, directory, environment, gib)
    written, restored, wrong = [], [], 0
    for _ in range(ROUNDS):
        place = tempfile.mkdtemp(prefix='checkpoint-')
        shutil.rmtree(place)
        begun = time.monotonic()
        node.command('checkpoint', '--state', node.state, name, place)
        written.append(time.monotonic() - begun)
        keeper.ask()
        begun = time.monotonic()
        node.command('restore', '--state', node.state, place)
        restored.append(time.monotonic() - begun)
        wrong += keeper.read()['wrong']
        shutil.rmtree(place, ignore_errors=True)
    keeper.close(node, name)
    return {'gib': gib, 'wrong': wrong, 'checkpoint': written, 'restore': restored}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', type=Path, required=True)
    parser.add_argument('--json', type=Path, required=True)
    parser.add_argument('--sizes', default='1,8')
    parser.add_argument('--backend', default='real')
    options = parser.parse_args()
    directory = options.build.resolve()
    build(directory)
    simulated = options.backend == 'simulated'
    outcome = {'machine': None if simulated else machine(), 'sizes': []}
    node = Node(options.backend, '--huge-pages', 'true', '--host-memory', '40GiB')
    try:
        for gib in map(float, options.sizes.split(',')):
            outcome['sizes'].append(measure_size(node, directory, gib))
            print(json.dumps(outcome['sizes'][-1]), flush=True)
        print((Path(node.state) / 'log').read_text()[-3000:], file=sys.stderr)
    finally:
        node.close()
    options.json.write_text(json.dumps(outcome, indent=1) + '\n')
    return 0 if all(one['wrong'] == 0 for one in outcome['sizes']) else 1


if __name__ == '__main__':
    sys.exit(main())
