#!/usr/bin/env python3
"""Measures several tenants on one GPU: alone, sliced by the hardware, and shared through the product, all in one run.

  sharing.py --build DIR --json FILE [--only NAME,NAME] [--seconds S]

Needs python3, nvcc, node and the built tree. A tenant's part is its rate by the native rate that it has alone.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from h200 import HERE, REPOSITORY, json_lines, machine, record

PROXY = REPOSITORY / 'gpu-proxy' / 'bin' / 'gpu-proxy.js'
LEAD_SECONDS = 2.5  # a tenant's own start: driver, context, module
TRAINING_LEAD_SECONDS = 25  # that, PyTorch, and the first steps, of two at once


class Node:
    """gpu-proxy on a state directory of its own."""

    def __init__(self, backend, *options):
        self.state = tempfile.mkdtemp(prefix='nv-')
        self.log = open(Path(self.state) / 'log', 'w')
        self.process = subprocess.Popen(['node', str(PROXY), 'serve', '--state', self.state, '--backend', backend, *options],
                                        stdout=self.log, stderr=self.log, start_new_session=True)
        for _ in range(300):
            if (Path(self.state) / 'admin.sock').exists():
                return
            time.sleep(0.1)
        raise RuntimeError('gpu-proxy serve does not come up: ' + (Path(self.state) / 'log').read_text()[-2000:])

    def command(self, *arguments):
        done = subprocess.run(['node', str(PROXY), *arguments], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f'gpu-proxy {" ".join(arguments)}: {done.stderr}')
        return done.stdout

    def allocate(self, options):
        """The environment of a program of a new allocation."""
        created = json.loads(self.command('create', '--state', self.state, '-o', 'json', *options))
        libraries = str(REPOSITORY / 'build' / 'release' / 'interposer')
        return {**os.environ, 'NVIDIA_VIRTUAL_SOCKET': created['socketPath'], 'LD_LIBRARY_PATH': libraries, 'TRITON_LIBCUDA_PATH': libraries}

    def close(self):
        for _ in range(2):
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        self.log.close()
        shutil.rmtree(self.state, ignore_errors=True)


def start(program, mode, begin, seconds, *arguments, environment=None):
    executable = [sys.executable, str(HERE / 'programs' / 'train.py')] if mode == 'train' else [str(program)]
    command = [*executable, mode, f'{begin:.3f}', str(seconds), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    stdout, stderr = process.communicate(timeout=120)
    if process.returncode != 0:
        return {'error': f'exit status {process.returncode}: {stderr[-500:]}'}
    return {line['name']: line['value'] for line in json_lines(stdout)}


class Bench:
    def __init__(self, directory, seconds, backend):
        directory.mkdir(parents=True, exist_ok=True)
        self.program = directory / 'tenant'
        self.seconds = seconds
        self.backend = backend
        nvcc = record.find_nvcc()
        flags = ['-std=c++17', '-O2', '-arch=sm_90', f'-L{record.runtime_directory(nvcc)}']
        for name in ('tenant', 'first_kernel'):
            subprocess.run([str(nvcc), *flags, '-o', str(directory / name), f'{name}.cu'], cwd=HERE / 'programs', check=True)
        self.iterations = {}
        self.solo = {}

    def kernel(self, microseconds):
        """Iterations of a kernel of that length."""
        if microseconds not in self.iterations:
            output = subprocess.run([str(self.program), 'calibrate', str(microseconds)], capture_output=True, text=True, check=True).stdout
            self.iterations[microseconds] = int(output)
        return self.iterations[microseconds]

    def arguments(self, tenant):
        return [self.kernel(tenant['kernel'])] if 'kernel' in tenant else []

    def together(self, tenants, environments):
        trains = any(tenant['mode'] == 'train' for tenant in tenants)
        begin = time.time() + (TRAINING_LEAD_SECONDS if trains else LEAD_SECONDS)
        processes = [start(self.program, tenant['mode'], begin, self.seconds, *self.arguments(tenant), environment=environment)
                     for tenant, environment in zip(tenants, environments)]
        return [finish(process) for process in processes]

    def alone(self, tenant):
        key = (tenant['mode'], tenant.get('kernel'))
        if key not in self.solo:
            self.solo[key] = self.together([tenant], [None])[0]
        return self.solo[key]

    def first_call(self, name, least_rounds=3):
        """From main to the end of the first kernel, with a worker that waits for it."""
        program = self.program.with_name('first_kernel')
        measure = lambda environment: finish(subprocess.Popen([str(program)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                              text=True))['start to first kernel']
        native = statistics.median(measure(None) for _ in range(least_rounds))
        node = Node(self.backend, '--warm-workers', '1')
        try:
            environment = node.allocate(share(100))
            times = []
            for _ in range(least_rounds):
                time.sleep(3)  # the next worker becomes warm
                times.append(measure(environment))
        finally:
            node.close()
        ratio = statistics.median(times) / native
        outcome = {'name': name, 'tenants': [], 'sliced': None, 'shared': None, 'native': native, 'warm': statistics.median(times), 'got': [ratio],
                   'limit': '<= 0.3 of native', 'holds': ratio <= 0.3}
        print(json.dumps(outcome), flush=True)
        return outcome

    def scenario(self, name, tenants, node_options=(), limit=None):
        """Each tenant: mode, kernel (us), options (of `gpu-proxy create`)."""
        for tenant in tenants:
            self.arguments(tenant)
        alone = [self.alone(tenant) for tenant in tenants]
        sliced = self.together(tenants, [None] * len(tenants))
        node = Node(self.backend, *node_options)
        try:
            environments = [node.allocate(tenant.get('options', [])) for tenant in tenants]
            shared = self.together(tenants, environments)
        finally:
            node.close()
        outcome = {'name': name, 'tenants': []}
        for tenant, one, two, three in zip(tenants, alone, sliced, shared):
            part = lambda figures: figures['rate'] / one['rate'] if 'rate' in figures and 'rate' in one else None
            outcome['tenants'].append({'mode': tenant['mode'], 'kernel': tenant.get('kernel'), 'options': tenant.get('options', []), 'alone': one,
                                       'sliced': {**two, 'part': part(two)}, 'shared': {**three, 'part': part(three)}})
        for where in ('sliced', 'shared'):
            parts = [tenant[where]['part'] for tenant in outcome['tenants']]
            outcome[where] = sum(parts) if None not in parts else None
        if limit:
            outcome.update(limit(outcome))
        print(json.dumps(outcome), flush=True)
        return outcome


def total(least):
    return lambda outcome: {'limit': f'total >= {least}', 'holds': outcome['shared'] is not None and outcome['shared'] >= least}


def shares(wanted, points):
    """What each got of what all got."""
    def judge(outcome):
        got = [100 * tenant['shared']['part'] / outcome['shared'] for tenant in outcome['tenants']] if outcome['shared'] else []
        holds = bool(got) and all(abs(one - other) <= points for one, other in zip(got, wanted))
        return {'limit': f'{":".join(map(str, wanted))} within {points} points', 'got': got, 'holds': holds}
    return judge


def halves(points):
    def judge(outcome):
        got = [100 * tenant['shared']['part'] for tenant in outcome['tenants'] if tenant['shared']['part'] is not None]
        return {'limit': f'each 50 % of its own within {points} points', 'got': got, 'holds': len(got) == 2 and all(abs(one - 50) <= points for one in got)}
    return judge


def waits_at_most(times):
    """The p99 of the first tenant, by what it is alone."""
    def judge(outcome):
        first = outcome['tenants'][0]
        ratio = first['shared'].get('p99', float('inf')) / first['alone']['p99']
        return {'limit': f'p99 <= {times} times its p99 alone', 'got': [ratio], 'holds': ratio <= times}
    return judge


def untouched(outcome):
    """The second tenant computes what it computes alone."""
    second = outcome['tenants'][1]
    same = second['shared'].get('losses') == second['alone'].get('losses') is not None
    return {'limit': 'losses bitwise as alone', 'holds': same and outcome['tenants'][0]['shared'].get('rate') == 1}


def better_than_sliced(outcome):
    return {'limit': 'total > sliced by the hardware', 'holds': None not in (outcome['shared'], outcome['sliced']) and outcome['shared'] > outcome['sliced']}


def share(percent, *more):
    return ['--share', str(percent), '--memory', '2GiB', *more]


def saturate(kernel, percent):
    return {'mode': 'saturate', 'kernel': kernel, 'options': share(percent)}


def decode(percent):
    return {'mode': 'decode', 'kernel': 9, 'options': share(percent)}


def train(percent):
    return {'mode': 'train', 'options': ['--share', str(percent), '--memory', '20GiB']}


def request(kernel):
    return {'mode': 'request', 'kernel': kernel, 'options': share(50, '--priority', '10')}


def lone(limit):
    def judge(outcome):
        return {'limit': f'>= {limit}', 'holds': outcome['shared'] is not None and outcome['shared'] >= limit}
    return judge


SCENARIOS = {
    'lone 200 us': ([saturate(200, 100)], lone(0.995)),
    'lone decoder': ([decode(100)], lone(0.9)),
    'two of 50 us': ([saturate(50, 50)] * 2, total(0.97)),
    'two of 200 us': ([saturate(200, 50)] * 2, total(0.97)),
    'two of 2 ms': ([saturate(2000, 50)] * 2, total(0.97)),
    'four of 50 us': ([saturate(50, 25)] * 4, total(0.97)),
    'four of 200 us': ([saturate(200, 25)] * 4, total(0.97)),
    'four of 2 ms': ([saturate(2000, 25)] * 4, total(0.97)),
    'two decoders': ([decode(50)] * 2, total(0.95)),
    'four decoders': ([decode(25)] * 4, total(0.95)),
    'decoder and batch': ([decode(50), saturate(600, 50)], halves(5)),
    'copies and compute': ([{'mode': 'copy', 'options': share(50)}, saturate(600, 50)], better_than_sliced),
    'small copies and compute': ([{'mode': 'touch', 'options': share(50)}, saturate(600, 50)], None),
    'shares 25:75': ([saturate(200, 25), saturate(200, 75)], shares([25, 75], 1)),
    'shares 10:90': ([saturate(200, 10), saturate(200, 90)], shares([10, 90], 1)),
    'fixed 25:50': ([{'mode': 'saturate', 'kernel': 200, 'options': share(25, '--policy', 'fixed')},
                     {'mode': 'saturate', 'kernel': 200, 'options': share(50, '--policy', 'fixed')}], None),
    'requests above small kernels': ([request(1000), saturate(50, 50)], waits_at_most(1.5)),
    'requests above batch': ([request(1000), saturate(600, 50)], None),
    'requests above training': ([request(1000), train(50)], waits_at_most(1.5)),
    'two trainings': ([train(50)] * 2, total(0.97)),
    'a fault beside training': ([{'mode': 'fault', 'options': share(50)}, train(50)], untouched),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', type=Path, default=Path('/tmp/nvidia-virtual-bench'))
    parser.add_argument('--json', type=Path, required=True)
    parser.add_argument('--only', help='these scenarios only, separated by commas')
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument('--backend', default='real', help='simulated: only to try this script')
    parser.add_argument('--node', action='append', default=[], help='an option for gpu-proxy serve; may be repeated')
    arguments = parser.parse_args()
    bench = Bench(arguments.build.resolve(), arguments.seconds, arguments.backend)
    report = {'machine': machine(), 'seconds': arguments.seconds, 'scenarios': []}
    for name in arguments.only.split(',') if arguments.only else ['first call', *SCENARIOS]:
        if name == 'first call':
            report['scenarios'].append(bench.first_call(name))
        else:
            tenants, limit = SCENARIOS[name]
            report['scenarios'].append(bench.scenario(name, tenants, arguments.node, limit))
        arguments.json.write_text(json.dumps(report, indent=1) + '\n')
    sys.exit(0 if all(one.get('holds', True) for one in report['scenarios']) else 1)


if __name__ == '__main__':
    main()
