#!/usr/bin/env python3
"""Measures tenants of one GPU: alone, sliced by the hardware, and shared by the product.

  sharing.py --build DIR --json FILE [--only NAME,NAME] [--seconds S]

Needs python3, nvcc, node and the built tree. `--only concurrent` runs the scenarios of concurrent
mode and needs nvidia-cuda-mps-control. A tenant's part is its rate relative to its native
rate alone.
"""

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

from h200 import HERE, REPOSITORY, argument_parser, json_lines, machine, record

PROXY = REPOSITORY / 'gpu-proxy' / 'bin' / 'gpu-proxy.js'
LEAD_SECONDS = 2.5  # start of a tenant: driver, context, module
TRAINING_LEAD_SECONDS = 25  # the same plus PyTorch and the first steps, for two tenants at once
ROUNDS = 5
MPS_LEAD_SECONDS = 6  # the same plus the server for which the first client waits
MOST_STOLEN = 0.015  # steal of the host in CPU s per s; above it, a run is repeated
ATTEMPTS = 3
GIB = 1 << 30


class Node:
    """gpu-proxy with its own state directory."""

    def __init__(self, backend, *options):
        self.state = tempfile.mkdtemp(prefix='nv-')
        os.chmod(self.state, 0o711)  # workers may run as other users
        self.log = open(Path(self.state) / 'log', 'w')
        self.programs = []  # end with it, also if it is ended
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        self.process = subprocess.Popen(
            ['node', str(PROXY), 'serve', '--state', self.state, '--backend', backend, *options],
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        for _ in range(300):
            if (Path(self.state) / 'admin.sock').exists():
                return
            time.sleep(0.1)
        raise RuntimeError(
            'gpu-proxy serve does not come up: ' + (Path(self.state) / 'log').read_text()[-2000:]
        )

    def command(self, *arguments):
        done = subprocess.run(
            ['node', str(PROXY), *arguments], capture_output=True, text=True, timeout=300
        )
        if done.returncode != 0:
            raise RuntimeError(f'gpu-proxy {" ".join(arguments)}: {done.stderr}')
        return done.stdout

    def allocate(self, options):
        """The environment of a program of a new allocation."""
        created = json.loads(self.command('create', '--state', self.state, '-o', 'json', *options))
        libraries = str(REPOSITORY / 'build' / 'release' / 'interposer')
        return {
            **os.environ,
            'NVIDIA_VIRTUAL_SOCKET': created['socketPath'],
            'LD_LIBRARY_PATH': libraries,
            'TRITON_LIBCUDA_PATH': libraries,
        }

    def close(self):
        for program in self.programs:
            program.kill()
            program.wait()
        time.sleep(
            0.5
        )  # the last workers end: with one left, it would leave its helpers for the next gpu-proxy
        for _ in range(2):
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        self.log.close()
        shutil.rmtree(self.state, ignore_errors=True)


class NativeMps:
    """MPS without this product."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix='nv-mps-')
        places = {
            'CUDA_MPS_PIPE_DIRECTORY': f'{self.directory}/pipes',
            'CUDA_MPS_LOG_DIRECTORY': f'{self.directory}/logs',
        }
        for place in places.values():
            os.mkdir(place)
        self.environment = {**os.environ, **places}
        self.control('-d')

    def control(self, *arguments, text=''):
        subprocess.run(
            [mps_control(), *arguments],
            env=self.environment,
            input=text,
            text=True,
            timeout=60,
            stdout=subprocess.DEVNULL,
        )

    def close(self):
        self.control(text='quit\n')
        shutil.rmtree(self.directory, ignore_errors=True)


def mps_control():
    found = shutil.which('nvidia-cuda-mps-control') or shutil.which(
        'nvidia-cuda-mps-control', path='/usr/local/nvidia/bin'
    )
    if not found:
        raise RuntimeError(
            'nvidia-cuda-mps-control is neither in PATH nor in /usr/local/nvidia/bin'
        )
    return found


def start(program, mode, moments, seconds, *arguments, environment=None):
    programs = {
        'train': [sys.executable, str(HERE / 'programs' / 'train.py')],
        'gang': [str(program.with_name('gang'))],
    }
    executable = programs.get(mode, [str(program)])
    command = [
        *executable,
        mode,
        ','.join(f'{moment:.3f}' for moment in moments),
        str(seconds),
        *map(str, arguments),
    ]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process, seconds=120):
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {'error': 'it did not end'}
    if process.returncode != 0:
        return {'error': f'exit status {process.returncode}: {stderr[-500:]}'}
    return {line['name']: line['value'] for line in json_lines(stdout)}


def stolen():
    """Processor seconds that the host took away: `steal` of proc_stat(5), all processors."""
    return int(Path('/proc/stat').read_text().split('\n', 1)[0].split()[8]) / os.sysconf(
        'SC_CLK_TCK'
    )


class Bench:
    def __init__(self, directory, seconds, backend):
        directory.mkdir(parents=True, exist_ok=True)
        self.program = directory / 'tenant'
        self.seconds = seconds
        self.backend = backend
        nvcc = record.find_nvcc()
        flags = ['-std=c++17', '-O2', '-arch=sm_90', f'-L{record.runtime_directory(nvcc)}']
        for name in ('tenant', 'first_kernel', 'gang'):
            subprocess.run(
                [str(nvcc), *flags, '-o', str(directory / name), f'{name}.cu'],
                cwd=HERE / 'programs',
                check=True,
            )
        self.iterations = {}
        self.solo = {}

    def kernel(self, microseconds):
        """Iterations for a kernel of that length."""
        if microseconds not in self.iterations:
            output = subprocess.run(
                [str(self.program), 'calibrate', str(microseconds)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            self.iterations[microseconds] = int(output)
        return self.iterations[microseconds]

    def arguments(self, tenant):
        return (
            [self.kernel(tenant['kernel'])] if 'kernel' in tenant else tenant.get('arguments', [])
        )

    def together(self, tenants, environments, lead=LEAD_SECONDS):
        """The work of each tenant, from the attempt with the least steal."""
        least = None
        for _ in range(ATTEMPTS):
            attempt = self.attempt(tenants, environments, lead)
            if any('error' in figures for figures in attempt):
                return attempt
            if least is None or attempt[0]['stolen'] < least[0]['stolen']:
                least = attempt
            if least[0]['stolen'] <= MOST_STOLEN:
                break
        return least

    def attempt(self, tenants, environments, lead):
        trains = any(tenant['mode'] == 'train' for tenant in tenants)
        begin = time.time() + (TRAINING_LEAD_SECONDS if trains else lead)
        seconds = min(tenant.get('seconds', self.seconds) for tenant in tenants)
        processes = [
            start(
                self.program,
                tenant['mode'],
                [begin],
                seconds,
                *self.arguments(tenant),
                environment=environment,
            )
            for tenant, environment in zip(tenants, environments)
        ]
        time.sleep(max(0, begin - time.time()))
        before = stolen()
        done = [finish(process) for process in processes]
        rate = (stolen() - before) / (time.time() - begin)
        return [{**figures, 'stolen': rate} for figures in done]

    def alone(self, tenant):
        key = (tenant['mode'], *self.arguments(tenant))
        if key not in self.solo or 'error' in self.solo[key]:
            self.solo[key] = self.together([tenant], [None])[0]
        return self.solo[key]

    def side_by_side(self, name, tenants, least):
        """In concurrent mode, compared with plain MPS."""
        for tenant in tenants:
            self.arguments(tenant)
        alone = [self.alone(tenant) for tenant in tenants]
        mps = NativeMps()
        try:
            native = self.together(tenants, [mps.environment] * len(tenants), MPS_LEAD_SECONDS)
        finally:
            mps.close()
        node = Node(self.backend, '--gpu-mode', 'concurrent')
        try:
            environments = [
                node.allocate([*tenant['options'], '--mode', 'concurrent']) for tenant in tenants
            ]
            shared = self.together(tenants, environments, MPS_LEAD_SECONDS)
        finally:
            node.close()
        outcome = {**described(name, tenants, alone, native, shared), 'sliced_is': 'native MPS'}
        parts = [tenant['shared']['part'] or 0 for tenant in outcome['tenants']]
        outcome.update({'limit': f'each >= {least}', 'got': parts, 'holds': min(parts) >= least})
        print(json.dumps(outcome), flush=True)
        return outcome

    def concurrent_checks(self, name):
        """Checks docs/sharing.md on concurrent mode; only the quota has a limit."""
        small = {'mode': 'small', 'kernel': 200}
        node = Node(self.backend, '--gpu-mode', 'concurrent', '--worker-uids', '20000-20009')
        allocate = lambda *options: node.allocate(
            ['--mode', 'concurrent', '--memory', '2GiB', *options]
        )
        run = lambda tenants, environments: self.together(tenants, environments, MPS_LEAD_SECONDS)
        try:
            [filled] = run([{'mode': 'fill'}], [allocate()])
            [all_threads, quarter] = [
                run([saturate(200, 25)], [allocate('--share', '25', '--policy', policy)])[0]
                for policy in ('burst', 'fixed')
            ]
            beside_fault = run([{'mode': 'fault'}, small], [allocate(), allocate()])
            [after_fault] = run([small], [allocate()])
            beside_kill = self.beside_kill(node, small, allocate)
            [after_kill] = run([small], [allocate()])
            said = [
                line.strip()
                for line in (Path(node.state) / 'log').read_text().splitlines()
                if 'MPS' in line
            ]
        finally:
            node.close()
        bytes_filled = filled.get('allocated', 0)
        outcome = {
            'name': name,
            'tenants': [],
            'limit': 'a quota of 2 GiB is whole and holds: GiB',
            'got': [bytes_filled / GIB],
            'holds': 2 * GIB - (64 << 20) <= bytes_filled <= 2 * GIB,
            'filled': filled,
            'burst of 25 %': all_threads,
            'fixed 25 %': quarter,
            'fault, and the tenant beside it': beside_fault,
            'after the fault': after_fault,
            'beside a killed control daemon': beside_kill,
            'after that': after_kill,
            'left behind': mps_processes(node.state),
            'said': said,
        }
        outcome['holds'] = (
            outcome['holds']
            and not outcome['left behind']
            and 'rate' in after_fault
            and 'rate' in after_kill
        )
        print(json.dumps(outcome), flush=True)
        return outcome

    def beside_kill(self, node, tenant, allocate):
        """A tenant whose control daemon is killed in the middle of its time."""
        begin = time.time() + MPS_LEAD_SECONDS
        process = start(
            self.program,
            tenant['mode'],
            [begin],
            self.seconds,
            *self.arguments(tenant),
            environment=allocate(),
        )
        time.sleep(max(0, begin + self.seconds / 2 - time.time()))
        for pid, name in mps_processes(node.state):
            if name == 'nvidia-cuda-mps-control':
                os.kill(pid, signal.SIGKILL)
        return finish(process)

    def first_call(self, name, rounds=7):
        """From main to the end of the first kernel, with a warm worker and without one."""
        program = self.program.with_name('first_kernel')
        measure = lambda environment: finish(
            subprocess.Popen(
                [str(program)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )['start to first kernel']
        times = {'native': [], 'warm': [], 'cold': []}
        with contextlib.ExitStack() as nodes:
            environments = {'native': None}
            for where, workers in (('warm', '1'), ('cold', '0')):
                node = Node(self.backend, '--warm-workers', workers)
                nodes.callback(node.close)
                environments[where] = node.allocate(share(100))
            for _ in range(rounds):
                time.sleep(3)  # the next worker becomes warm
                for where, environment in environments.items():
                    times[where].append(measure(environment))
        medians = {where: statistics.median(each) for where, each in times.items()}
        ratios = [medians[where] / medians['native'] for where in ('warm', 'cold')]
        outcome = {
            'name': name,
            'tenants': [],
            'sliced': None,
            'shared': None,
            **medians,
            'got': ratios,
            'limit': '<= 0.3 of native with a warm worker; the second figure is without',
            'holds': ratios[0] <= 0.3,
        }
        print(json.dumps(outcome), flush=True)
        return outcome

    def scenario(self, name, tenants, node_options=(), limit=None):
        """For each tenant: mode, kernel (us), options (of `gpu-proxy create`)."""
        measure = (
            self.in_rounds
            if all(tenant['mode'] == 'train' for tenant in tenants)
            else self.one_by_one
        )
        outcome = described(name, tenants, *measure(tenants, node_options))
        if limit:
            outcome.update(limit(outcome))
        print(json.dumps(outcome), flush=True)
        return outcome

    def one_by_one(self, tenants, node_options):
        """Each tenant alone, sliced by the hardware, and shared."""
        for tenant in tenants:
            self.arguments(tenant)
        alone = [self.alone(tenant) for tenant in tenants]
        sliced = self.together(tenants, [None] * len(tenants))
        node = Node(self.backend, *node_options)
        try:
            environments = [node.allocate(tenant.get('options', [])) for tenant in tenants]
            return alone, sliced, self.together(tenants, environments)
        finally:
            node.close()

    def in_rounds(self, tenants, node_options):
        """Several runs in turns in the same processes, which make 46 to 50 steps a second alone."""
        begin = time.time() + 2 * TRAINING_LEAD_SECONDS
        moments = [begin + number * (self.seconds + 0.5) for number in range(3 * ROUNDS)]
        alone, sliced, shared = moments[0::3], moments[1::3], moments[2::3]
        run = lambda tenant, when, environment=None: start(
            self.program, tenant['mode'], when, self.seconds, environment=environment
        )
        node = Node(self.backend, *node_options)
        try:
            native = [
                run(tenants[0], sorted([*alone, *sliced])),
                *(run(tenant, sliced) for tenant in tenants[1:]),
            ]
            ours = [run(tenant, shared, node.allocate(tenant['options'])) for tenant in tenants]
            patience = moments[-1] - time.time() + 60
            first, *others = [finish(process, patience) for process in native]
            shared = [finish(process, patience) for process in ours]
        finally:
            node.close()
        if 'error' in first:
            return [first] * len(tenants), [first, *others], shared
        part = lambda number: {
            **first,
            'rate': statistics.median(first['rates'][number::2]),
            'rates': first['rates'][number::2],
        }
        return [part(0)] * len(tenants), [part(1), *others], shared


def described(name, tenants, alone, sliced, shared):
    outcome = {'name': name, 'tenants': []}
    for tenant, one, two, three in zip(tenants, alone, sliced, shared):
        part = lambda figures: (
            figures['rate'] / one['rate'] if 'rate' in figures and 'rate' in one else None
        )
        outcome['tenants'].append(
            {
                'mode': tenant['mode'],
                'kernel': tenant.get('kernel'),
                'options': tenant.get('options', []),
                'alone': one,
                'sliced': {**two, 'part': part(two)},
                'shared': {**three, 'part': part(three)},
            }
        )
    for where in ('sliced', 'shared'):
        parts = [tenant[where]['part'] for tenant in outcome['tenants']]
        outcome[where] = sum(parts) if None not in parts else None
    return outcome


def mps_processes(state):
    """Pid and program of processes with pipes in a state directory."""
    found = []
    for process in Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):
            if f'CUDA_MPS_PIPE_DIRECTORY={state}/'.encode() in (process / 'environ').read_bytes():
                found.append((int(process.name), Path(os.readlink(process / 'exe')).name))
    return found


def total(least, p99=None):
    """p99 of a piece of work in ms, of the tenant that is worst off."""
    def judge(outcome):
        shared = outcome['shared']
        limit, holds = f'total >= {least}', shared is not None and shared >= least
        if p99 is None:
            return {'limit': limit, 'holds': holds}
        got = [tenant['shared'].get('p99', float('inf')) / 1000 for tenant in outcome['tenants']]
        return {
            'limit': f'{limit}, p99 <= {p99} ms',
            'got': [shared, max(got)],
            'holds': holds and max(got) <= p99,
        }
    return judge


def shares(wanted, points):
    """The part of each tenant in the sum of all."""
    def judge(outcome):
        got = (
            [100 * tenant['shared']['part'] / outcome['shared'] for tenant in outcome['tenants']]
            if outcome['shared']
            else []
        )
        holds = bool(got) and all(abs(one - other) <= points for one, other in zip(got, wanted))
        return {
            'limit': f'{":".join(map(str, wanted))} within {points} points',
            'got': got,
            'holds': holds,
        }
    return judge


def halves(points):
    def judge(outcome):
        got = [
            100 * tenant['shared']['part']
            for tenant in outcome['tenants']
            if tenant['shared']['part'] is not None
        ]
        return {
            'limit': f'each 50 % of its own within {points} points',
            'got': got,
            'holds': len(got) == 2 and all(abs(one - 50) <= points for one in got),
        }
    return judge


def takes_at_most(times, quantile='p99'):
    """The first tenant's time per piece of work, relative to alone. p50: without a wait."""
    def judge(outcome):
        first = outcome['tenants'][0]
        ratio = first['shared'].get(quantile, float('inf')) / first['alone'][quantile]
        return {
            'limit': f'{quantile} <= {times} times its {quantile} alone',
            'got': [ratio],
            'holds': ratio <= times,
        }
    return judge


def untouched(outcome):
    """The second tenant computes the same as alone."""
    second = outcome['tenants'][1]
    same = second['shared'].get('losses') == second['alone'].get('losses') is not None
    return {
        'limit': 'losses bitwise as alone',
        'holds': same and outcome['tenants'][0]['shared'].get('rate') == 1,
    }


def as_sliced(least):
    """Large copies and the hardware's slicing do not slow each other down: no gain is expected."""
    def limit(outcome):
        shared, sliced = outcome['shared'], outcome['sliced']
        return {
            'limit': f'total >= {least} of sliced by the hardware',
            'holds': None not in (shared, sliced) and shared >= least * sliced,
        }
    return limit


def above_sliced(outcome):
    shared, sliced = outcome['shared'], outcome['sliced']
    return {
        'limit': 'total > sliced by the hardware',
        'holds': None not in (shared, sliced) and shared > sliced,
    }


def share(percent, *more):
    return ['--share', str(percent), '--memory', '2GiB', *more]


def saturate(kernel, percent):
    return {'mode': 'saturate', 'kernel': kernel, 'options': share(percent)}


def for_a_second(tenant):
    """The tenant and those beside it."""
    return {**tenant, 'seconds': 1}


def small(percent):
    return {'mode': 'small', 'kernel': 200, 'options': share(percent)}


def feed(percent):
    return {'mode': 'feed', 'kernel': 200, 'options': share(percent)}


def touch(microseconds, percent):
    """A small copy, then a pause."""
    return {'mode': 'touch', 'arguments': [microseconds], 'options': share(percent)}


def decode(percent, *more):
    return {'mode': 'decode', 'kernel': 9, 'options': share(percent, *more)}


def train(percent):
    return {'mode': 'train', 'options': ['--share', str(percent), '--memory', '20GiB']}


def request(kernel):
    return {'mode': 'request', 'kernel': kernel, 'options': share(50, '--priority', '10')}


def gang(percent):
    """Kernels of 0.5 ms on two GPUs."""
    return {
        'mode': 'gang',
        'arguments': [500],
        'options': share(percent, '--gpu', '0', '--gpu', '1'),
    }


def lone(limit):
    def judge(outcome):
        return {
            'limit': f'>= {limit}',
            'holds': outcome['shared'] is not None and outcome['shared'] >= limit,
        }
    return judge


LOW = ('--latency', 'low')

SCENARIOS = {
    'lone 200 us': ([saturate(200, 100)], lone(0.995)),
    'lone decoder': ([decode(100)], lone(0.9)),
    'two of 50 us': ([saturate(50, 50)] * 2, total(0.97)),
    'two of 200 us': ([saturate(200, 50)] * 2, total(0.97)),
    'two of 2 ms': ([saturate(2000, 50)] * 2, total(0.97)),
    'four of 50 us': ([saturate(50, 25)] * 4, total(0.97)),
    'four of 200 us': ([saturate(200, 25)] * 4, total(0.97)),
    'four of 2 ms': ([saturate(2000, 25)] * 4, total(0.97)),
    'two decoders': ([decode(50)] * 2, total(0.95, 2.5)),
    'four decoders': ([decode(25)] * 4, total(0.92, 5)),
    'two decoders of low latency': ([decode(50, *LOW)] * 2, None),
    'four decoders of low latency': ([decode(25, *LOW)] * 4, None),
    'decoder and batch of low latency': (
        [decode(50, *LOW), {**saturate(600, 50), 'options': share(50, *LOW)}],
        None,
    ),
    'decoder and batch': ([decode(50), saturate(600, 50)], halves(5)),
    'copies and compute': (
        [{'mode': 'copy', 'options': share(50)}, saturate(600, 50)],
        as_sliced(0.99),
    ),
    'copies and streaming': (
        [{'mode': 'copy', 'options': share(50)}, {'mode': 'stream', 'options': share(50)}],
        as_sliced(0.99),
    ),
    'pageable copies and compute': (
        [{'mode': 'upload', 'options': share(50)}, saturate(600, 50)],
        above_sliced,
    ),
    'feeding and compute': ([feed(50), saturate(600, 50)], None),
    'small copies and compute': ([touch(1000, 50), saturate(600, 50)], None),
    'small copies in a row and compute': (
        [touch(0, 50), saturate(600, 50)],
        takes_at_most(2, 'p50'),
    ),
    'shares 25:75 over 1 s': (
        [for_a_second(saturate(200, 25)), saturate(200, 75)],
        shares([25, 75], 1),
    ),
    'shares 10:90 over 1 s': (
        [for_a_second(saturate(200, 10)), saturate(200, 90)],
        shares([10, 90], 1),
    ),
    'fixed 25:50': (
        [
            {'mode': 'saturate', 'kernel': 200, 'options': share(25, '--policy', 'fixed')},
            {'mode': 'saturate', 'kernel': 200, 'options': share(50, '--policy', 'fixed')},
        ],
        None,
    ),
    'requests above small kernels': ([request(1000), saturate(50, 50)], takes_at_most(1.5)),
    'requests above batch': ([request(1000), saturate(600, 50)], None),
    'requests above training': ([request(1000), train(50)], takes_at_most(1.5)),
    'four small in turns': ([small(25)] * 4, None),
    'two trainings': ([train(50)] * 2, total(0.97)),
    'a fault beside training': ([{'mode': 'fault', 'options': share(50)}, train(50)], untouched),
}

CONCURRENT = {
    'four small side by side': lambda bench, name: bench.side_by_side(name, [small(25)] * 4, 0.97),
    'feeding side by side': lambda bench, name: bench.side_by_side(
        name, [feed(50), saturate(600, 50)], 0.8
    ),
    'concurrent checks': lambda bench, name: bench.concurrent_checks(name),
}

# Requires two GPUs. A deadlock reaches the timeout of finish().
GANGS = {
    'gangs 50:50': ([gang(50), gang(50)], shares([50, 50], 3)),
    'gangs 25:75': ([gang(25), gang(75)], shares([25, 75], 3)),
}


# What a change of the windows' length may change.
WINDOWS = [
    name
    for name in SCENARIOS
    if 'decoder' in name
    or name.startswith(('two of', 'four of', 'shares', 'requests', 'two trainings'))
]


def row(outcome):
    """Of the table in docs/performance.md: part of each tenant, and p99 in ms."""
    def cell(key):
        return ' + '.join(
            f'{tenant[key]["part"] or 0:.3f} ({tenant[key].get("p99", 0) / 1000:.3g})'
            for tenant in outcome['tenants']
        )

    limit = outcome.get('limit')
    judged = f'{limit}: {"holds" if outcome["holds"] else "BROKEN"}' if limit else ''
    cells = [outcome['name'], cell('sliced'), cell('shared'), f'{outcome.get("shared")}', judged]
    return f'| {" | ".join(cells)} |'


def chosen(only):
    groups = {
        'windows': WINDOWS,
        'concurrent': ['four small in turns', 'feeding and compute', *CONCURRENT],
        'gang': [*GANGS],
    }
    if not only:
        return ['first call', *SCENARIOS, *CONCURRENT]
    return [name for each in only.split(',') for name in groups.get(each, [each])]


def main():
    parser = argument_parser(__doc__)
    parser.add_argument('--only', help='these scenarios only, separated by commas')
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument(
        '--node', action='append', default=[], help='an option for gpu-proxy serve; may be repeated'
    )
    arguments = parser.parse_args()
    bench = Bench(arguments.build.resolve(), arguments.seconds, arguments.backend)
    report = {'machine': machine(), 'seconds': arguments.seconds, 'scenarios': []}
    for name in chosen(arguments.only):
        if name == 'first call':
            report['scenarios'].append(bench.first_call(name))
        elif name in CONCURRENT:
            report['scenarios'].append(CONCURRENT[name](bench, name))
        else:
            tenants, limit = {**SCENARIOS, **GANGS}[name]
            report['scenarios'].append(bench.scenario(name, tenants, arguments.node, limit))
        report['scenarios'][-1]['date'] = report['machine']['date']  # some may be measured later
        arguments.json.write_text(json.dumps(report, indent=1) + '\n')
    print('| tenants | sliced | shared | total | limit |\n| --- | --- | --- | --- | --- |')
    print('\n'.join(row(outcome) for outcome in report['scenarios']))
    sys.exit(0 if all(one.get('holds', True) for one in report['scenarios']) else 1)


if __name__ == '__main__':
    main()
