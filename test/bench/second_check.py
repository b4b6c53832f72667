#!/usr/bin/env python3
"""Tests gpu-proxy's second check on a GPU.

Honest tenants continue, a lying worker is killed within a second, and reported GPU time equals
the grants.

  second_check.py --build DIR --json FILE

Needs python3, nvcc, node, NVML and the built tree.
"""

import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from h200 import HERE, REPOSITORY, argument_parser, machine, record
from sharing import Node

MIB = 1 << 20
BUILT = REPOSITORY / 'build' / 'release'
LIAR = REPOSITORY / 'gpu-proxy' / 'dist' / 'testing' / 'lying-worker.js'
LIARS_QUOTA = 1024 * MIB
TAKEN = 3 * LIARS_QUOTA
HONEST = 2048 * MIB
BUSY_SECONDS = 16
RULE = 0.25  # of the GPU's time: charts/nvidia-virtual/templates/monitoring/prometheus-rule.yaml


def make_build(directory):
    """The build, with a worker that lies in the allocation with the liar's quota."""
    lie = json.dumps({'quota': LIARS_QUOTA, 'taken': TAKEN})
    code = f"(await import('{LIAR}')).makeLyingBuild('{directory}', {lie})"
    subprocess.run(['node', '--input-type=module', '-e', code], check=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class Bench:
    def __init__(self, directory, backend):
        nvcc = record.find_nvcc()
        self.program = directory / 'second_check'
        subprocess.run(
            [
                str(nvcc),
                '-std=c++17',
                '-O2',
                '-arch=sm_90',
                f'-L{record.runtime_directory(nvcc)}',
                '-o',
                str(self.program),
                'second_check.cu',
            ],
            cwd=HERE / 'programs',
            check=True,
        )
        self.build = tempfile.TemporaryDirectory(prefix='nv-build-')
        make_build(Path(self.build.name))
        os.environ['NVIDIA_VIRTUAL_BUILD'] = self.build.name
        port = free_port()
        self.metrics = f'http://127.0.0.1:{port}/metrics'
        self.node = Node(backend, '--http', f'127.0.0.1:{port}')

    def close(self):
        self.node.close()
        self.build.cleanup()

    def create(self, *options):
        return json.loads(
            self.node.command('create', '--state', self.node.state, '-o', 'json', *options)
        )

    def delete(self, allocation):
        self.node.command('delete', '--state', self.node.state, '--force', allocation['id'])

    def run(self, allocation, *arguments):
        libraries = str(BUILT / 'interposer')
        environment = {
            **os.environ,
            'NVIDIA_VIRTUAL_SOCKET': allocation['socketPath'],
            'LD_LIBRARY_PATH': libraries,
        }
        return subprocess.Popen(
            [str(self.program), *map(str, arguments)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def value(self, name, allocation):
        """A metric of an allocation, or None."""
        text = urllib.request.urlopen(self.metrics, timeout=10).read().decode()
        found = re.search(
            rf'^{name}{{[^}}]*allocation="{allocation["id"]}"[^}}]*}} (\S+)$', text, re.M
        )
        return float(found.group(1)) if found else None

    def log(self):
        return (Path(self.node.state) / 'log').read_text()

    def honest(self):
        """Three programs fill one quota, and run for longer than the check takes."""
        allocation = self.create('--memory', str(HONEST), '--name', 'honest')
        programs = [self.run(allocation, 'fill') for _ in range(3)]
        filled = [
            json.loads(program.stdout.readline() or '{}').get('filled') for program in programs
        ]
        time.sleep(3)
        reported = self.value('nvidia_virtual_allocation_memory_reported_bytes', allocation)
        unaccounted = self.value('nvidia_virtual_allocation_memory_unaccounted_bytes', allocation)
        live = [program.poll() is None for program in programs]
        for program in programs:
            program.communicate(timeout=60)
        self.delete(allocation)
        started = sum(one is not None for one in filled)
        return {
            'name': 'honest',
            'filled': filled,
            'reported': reported,
            'unaccounted': unaccounted,
            'sessions': started,
            'holds': sum(live) >= started >= 1
            and reported is not None
            and 'MEMORY_BEYOND' not in self.log()
            and 'were ended: according to NVML' not in self.log(),
        }

    def lying(self):
        """Seconds from the liar's allocation until its client loses the connection."""
        liar, neighbour = self.create('--memory', str(LIARS_QUOTA), '--name', 'liar'), self.create(
            '--name', 'neighbour'
        )
        client = socket.socket(socket.AF_UNIX)
        client.connect(liar['socketPath'])
        seen = None
        for _ in range(1200):
            held = self.value('nvidia_virtual_allocation_memory_reported_bytes', liar)
            if seen is None and held is not None and held >= TAKEN:
                seen = time.monotonic()
            if select.select([client], [], [], 0.02)[0]:
                break
        ended = time.monotonic()
        client.close()
        time.sleep(0.5)
        program = self.run(neighbour, 'fill')
        filled = json.loads(program.stdout.readline() or '{}').get('filled', 0)
        program.communicate(timeout=60)
        sentence = next(
            (
                line
                for line in self.log().splitlines()
                if 'were ended: according to NVML' in line
            ),
            '',
        )
        for allocation in (liar, neighbour):
            self.delete(allocation)
        quota = int(neighbour['memoryBytes'])
        return {
            'name': 'lying',
            'seconds': None if seen is None else ended - seen,
            'neighbour': filled,
            'quota': quota,
            'log': sentence,
            'holds': sentence != ''
            and (seen is None or ended - seen <= 1)
            and filled >= 0.95 * quota,
        }

    def time(self):
        """Two tenants that are always busy, with fixed shares."""
        shares = {'25': self.create('--memory', '512MiB', '--share', '25', '--policy', 'fixed'),
                  '70': self.create('--memory', '512MiB', '--share', '70', '--policy', 'fixed')}
        programs = [self.run(allocation, 'busy', BUSY_SECONDS) for allocation in shares.values()]
        time.sleep(3)
        used = 'nvidia_virtual_allocation_used_seconds_total'
        before = {share: self.value(used, allocation) for share, allocation in shares.items()}
        begin = time.monotonic()
        time.sleep(BUSY_SECONDS - 8)
        seconds = time.monotonic() - begin
        parts = {}
        for share, allocation in shares.items():
            granted = (self.value(used, allocation) - before[share]) / seconds
            parts[share] = {
                'granted': granted,
                'reported': self.value('nvidia_virtual_allocation_reported_busy_ratio', allocation),
            }
        processor = self.processor()
        for program in programs:
            program.communicate(timeout=60)
        for allocation in shares.values():
            self.delete(allocation)
        holds = all(
            part['granted'] > 0
            and part["reported"] is not None
            and part['reported'] <= part['granted'] + RULE
            for part in parts.values()
        )
        return {'name': 'time', 'shares': parts, 'processor': processor, 'holds': holds}

    def processor(self):
        """Processor use of the process that reads NVML, as a share of one processor; None if it
        does not run.
        """
        def ticks():
            for directory in Path('/proc').glob('[0-9]*'):
                try:
                    words = (directory / 'cmdline').read_bytes().split(b'\0')
                    if b'--watch' in words and b'--processes' in words:
                        fields = (directory / 'stat').read_text().rsplit(')', 1)[1].split()
                        return int(fields[11]) + int(fields[12])
                except OSError:
                    continue
            return None
        begin, before = time.monotonic(), ticks()
        time.sleep(3)
        after = ticks()
        if before is None or after is None:
            return None
        return (after - before) / os.sysconf('SC_CLK_TCK') / (time.monotonic() - begin)


def main():
    parser = argument_parser(__doc__)
    arguments = parser.parse_args()
    directory = arguments.build.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    bench = Bench(directory, arguments.backend)
    outcomes = []
    try:
        for part in (bench.honest, bench.lying, bench.time):
            outcomes.append(part())
            print(json.dumps(outcomes[-1]), flush=True)
            if not outcomes[-1]['holds']:
                print(bench.log()[-4000:], file=sys.stderr)
    except BaseException:
        print(bench.log()[-4000:], file=sys.stderr)
        raise
    finally:
        bench.close()
    arguments.json.write_text(
        json.dumps({'machine': machine(), 'parts': outcomes}, indent=1) + '\n'
    )
    wrong = [outcome['name'] for outcome in outcomes if not outcome['holds']]
    print(f'second check: {", ".join(wrong)} DOES NOT HOLD' if wrong else 'second check: holds')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
