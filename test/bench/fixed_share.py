#!/usr/bin/env python3
"""Measures the throughput of a fixed share of 5 %, and the charge of an endless kernel.

  fixed_share.py --build DIR --json FILE [--seconds S]

Needs python3, nvcc, node and the built tree. About 90 s with S = 1.
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from h200 import HERE, json_lines, machine, record
from sharing import Node

SHARE = 0.05
# Work of a second beyond the share: one window of 5 ms, and the wait at the end of a loop.
MOST = 0.075
ENDLESS_SECONDS = 24
HELD_BACK = ('cuMemcpy', 'cuMemset', 'cuLaunch')
# Part of its rate beside a loop of event records with a fixed share of 5 %.
LEAST_BESIDE_EVENTS = 0.9


def run(program, *arguments, environment=None, seconds=100):
    done = subprocess.run(
        [str(program), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    if done.returncode != 0:
        raise RuntimeError(f'{program.name} {arguments}: {done.stderr[-500:]}')
    return {line['name']: line['value'] for line in json_lines(done.stdout)}


def charged(node):
    """Milliseconds that the arbiter charged each allocation for work after its turn."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(f'{node.state}/arbiter/arbiter.sock')
        control.sendall(b'control 1\nfigures\n')
        text = b''
        while not text.endswith(b'end\n'):
            text += control.recv(65536)
    words = [line.split() for line in text.decode().splitlines()]
    return {each[1]: int(each[4]) / 1e6 for each in words if each[0] == 'figures'}


def calls(program, seconds, native):
    node = Node('real')
    try:
        fixed = run(
            program,
            'calls',
            seconds,
            environment=node.allocate(['--share', '5', '--policy', 'fixed', '--memory', '4GiB']),
        )
    finally:
        node.close()
    parts = {name: fixed[name] / rate for name, rate in native.items()}
    for name, part in parts.items():
        print(
            f'{name:36} alone {native[name]:10.4g}'
            f'   fixed 5 % {fixed[name]:10.4g}   part {part:.4f}',
            flush=True,
        )
    return {
        'native': native,
        'fixed': fixed,
        'parts': parts,
        'holds': all(part <= MOST for name, part in parts.items() if name.startswith(HELD_BACK)),
    }


def neighbour(program, seconds):
    """The loss of a busy tenant beside one of 5 % that only records events."""
    node = Node('real')
    try:
        busy = node.allocate(['--share', '95', '--memory', '2GiB'])
        events = node.allocate(['--share', '5', '--policy', 'fixed', '--memory', '2GiB'])
        alone = run(program, 'busy', seconds, environment=busy)['launches']
        other = subprocess.Popen(
            [str(program), 'events', str(seconds + 6)], env=events, stdout=subprocess.DEVNULL
        )
        time.sleep(3)
        beside = run(program, 'busy', seconds, environment=busy)['launches']
        other.kill()
        other.wait()
    finally:
        node.close()
    print(
        f'a busy tenant beside a loop of cuEventRecord keeps {beside / alone:.3f} of its rate',
        flush=True,
    )
    return {
        'alone': alone,
        'beside': beside,
        'part': beside / alone,
        'holds': beside / alone >= LEAST_BESIDE_EVENTS,
    }


def endless(program):
    """A kernel of 24 s beside a busy tenant gets half of the GPU, and is charged half the time."""
    node = Node('real')
    try:
        stubborn = node.allocate(['--share', '50', '--memory', '2GiB'])
        busy = node.allocate(['--share', '50', '--memory', '2GiB'])
        kernel = subprocess.Popen(
            [str(program), 'endless', str(ENDLESS_SECONDS)],
            env=stubborn,
            stdout=subprocess.PIPE,
            text=True,
        )
        time.sleep(1.5)
        beside = subprocess.Popen(
            [str(program), 'busy', str(ENDLESS_SECONDS * 2 + 4)],
            env=busy,
            stdout=subprocess.DEVNULL,
        )
        output = kernel.communicate(timeout=100)[0]
        time.sleep(0.5)
        figures = sorted(charged(node).values())
        beside.kill()
        beside.wait()
    finally:
        node.close()
    ran = json.loads(output)['value']
    print(
        f'a kernel ran for {ran} s beside a busy tenant; '
            f'charged after their turns, in ms: {figures}',
        flush=True,
    )
    return {
        'seconds': ran,
        'charged': figures,
        'holds': len(figures) == 2 and figures[-1] > 0.4 * 1000 * (ran - 4),
    }


def first_call(program):
    def median(environment):
        times = []
        for _ in range(5):
            begin = time.monotonic()
            subprocess.run([str(program)], env=environment, check=True, stdout=subprocess.DEVNULL)
            times.append(time.monotonic() - begin)
            time.sleep(1)
        return statistics.median(times)

    node = Node('real', '--warm-workers', '1')
    try:
        time.sleep(2)
        remoted = median(node.allocate(['--share', '50', '--memory', '2GiB']))
    finally:
        node.close()
    native = median(None)
    print(
        f'a first kernel, whole program: native {native:.3f} s, remoted {remoted:.3f} s, '
            f'ratio {remoted / native:.2f}',
        flush=True,
    )
    return {'native': native, 'remoted': remoted, 'ratio': remoted / native}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', type=Path, required=True)
    parser.add_argument('--json', type=Path, required=True)
    parser.add_argument('--seconds', type=float, default=1)
    options = parser.parse_args()
    options.build.mkdir(parents=True, exist_ok=True)
    nvcc = record.find_nvcc()
    libraries = record.runtime_directory(nvcc)
    flags = ['-std=c++17', '-O2', '-arch=sm_90', f'-L{libraries}', f'-L{libraries}/stubs']
    for name in ('fixed_share', 'first_kernel'):
        subprocess.run(
            [str(nvcc), *flags, '-o', str(options.build / name), f'{name}.cu', '-lcuda'],
            cwd=HERE / 'programs',
            check=True,
        )
    program = options.build / 'fixed_share'
    results = {'machine': machine()}
    native = run(program, 'calls', options.seconds / 2)
    for name, part in (
        ('calls', lambda: calls(program, options.seconds, native)),
        ('neighbour', lambda: neighbour(program, 2)),
        ('endless', lambda: endless(program)),
        ('first_call', lambda: first_call(options.build / 'first_kernel')),
    ):
        try:
            results[name] = part()
        except (RuntimeError, subprocess.SubprocessError, OSError) as error:
            results[name] = {'error': str(error), 'holds': False}
            print(f'{name}: {error}', flush=True)
    options.json.write_text(json.dumps(results, indent=2))
    holds = all(each.get('holds', True) for each in results.values())
    print('fixed_share:', 'PASS' if holds else 'FAIL')
    return 0 if holds else 1


if __name__ == '__main__':
    sys.exit(main())
