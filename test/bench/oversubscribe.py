#!/usr/bin/env python3
"""Two programs whose memory does not fit on the GPU together, and three that seldom compute.

  oversubscribe.py --build DIR --json FILE [--pair GIB,QUOTA] [--three GIB,QUOTA] [--seconds N]
      [--turns N] [--host-memory SIZE] [--backend simulated]

GIB is what each program holds, QUOTA its quota in GiB. Without --pair and --three it measures both.
Needs python3, nvcc, node, the built tree, and host memory for what is out. `serial` is the time of
the same work by each program alone, one after the other.
"""

import json
import statistics
import sys
import time
from pathlib import Path

from h200 import argument_parser, machine
from sharing import Node
from suspend import Keeper, build

ROUNDS = 6


def sizes(text):
    return [float(size) for size in text.split(',')]


def keeper(node, directory, name, gib, quota, times=1):
    environment = node.allocate(['--name', name, '--memory', f'{int(quota * 1024)}MiB'])
    return Keeper(node, directory, environment, gib, times)


def turn(keepers):
    """All compute at the same time; what each says."""
    for one in keepers:
        one.ask()
    return [one.read() for one in keepers]


def two_that_compute(node, directory, gib, quota, seconds, turns):
    """Strict turns, and both always, against one after the other."""
    trial = keeper(node, directory, 'trial', gib, quota, 10)
    times = round(seconds / (turn([trial])[0]['seconds'] / 10))
    trial.close(node, 'trial')

    alone = keeper(node, directory, 'alone', gib, quota, times)
    answers = [turn([alone])[0] for _ in range(turns)]
    serial = 2 * sum(answer['seconds'] for answer in answers)
    print('serial', serial, flush=True)
    alone.close(node, 'alone')

    names = ['left', 'right']
    pair = [keeper(node, directory, name, gib, quota, times) for name in names]
    for one in pair:  # each has an arena now
        turn([one])
    begun = time.monotonic()
    for _ in range(turns):
        for one in pair:
            answers += turn([one])
    strict = time.monotonic() - begun
    print('strict turns', strict, flush=True)
    begun = time.monotonic()
    for _ in range(turns):
        for one in pair:
            one.ask()
    answers += [one.read() for one in pair for _ in range(turns)]
    always = time.monotonic() - begun
    for name, one in zip(names, pair, strict=True):
        one.close(node, name)
    return {
        'gib': gib,
        'seconds of a turn': serial / turns / 2,
        'serial': serial,
        'strict turns': strict,
        'always': always,
        'ratio, strict turns': serial / strict,
        'ratio, always': serial / always,
        'wrong': sum(answer['wrong'] for answer in answers),
    }


def three_that_seldom_compute(node, directory, gib, quota):
    """Two of three fit. Each is asked in its turn, when its memory is out."""
    names = ['first', 'second', 'third']
    three = [keeper(node, directory, name, gib, quota) for name in names]
    answers = []
    for _ in range(ROUNDS):
        for one in three:
            time.sleep(2)  # the others are idle by now
            answers += turn([one])
    waits = [answer['answered'] for answer in answers][3:]
    for name, one in zip(names, three, strict=True):
        one.close(node, name)
    return {
        'gib': gib,
        'first answer': statistics.median(waits),
        'all': waits,
        'wrong': sum(answer['wrong'] for answer in answers),
    }


def main():
    parser = argument_parser(__doc__)
    parser.add_argument('--pair', type=sizes)
    parser.add_argument('--three', type=sizes)
    parser.add_argument('--seconds', type=float, default=20)
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--host-memory', default='220GiB')
    options = parser.parse_args()
    directory = options.build.resolve()
    build(directory)
    if options.pair is None and options.three is None:
        options.pair, options.three = [98, 100], [8, 60]
    simulated = options.backend == 'simulated'
    outcome = {'machine': None if simulated else machine()}
    node = Node(
        options.backend, '--gpu', '0', '--oversubscription', '1.5', '--huge-pages', 'true',
        '--host-memory', options.host_memory,
    )
    try:
        if options.three is not None:
            outcome['three'] = three_that_seldom_compute(node, directory, *options.three)
            print(json.dumps(outcome['three']), flush=True)
        if options.pair is not None:
            outcome['pair'] = two_that_compute(
                node, directory, *options.pair, options.seconds, options.turns
            )
            print(json.dumps(outcome['pair']), flush=True)
        print((Path(node.state) / 'log').read_text()[-3000:], file=sys.stderr)
    finally:
        node.close()
    options.json.write_text(json.dumps(outcome, indent=1) + '\n')
    return 0 if all(outcome[one]['wrong'] == 0 for one in outcome if one != 'machine') else 1


if __name__ == '__main__':
    sys.exit(main())
