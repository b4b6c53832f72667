#!/usr/bin/env python3
"""Loads tricky and damaged code images, and compares the charged memory with NVML's figure.

  images.py --build DIR --json FILE [--seconds N]

Needs python3, nvcc, node, NVML and the built tree. An image that ends the session is no violation:
the session is the tenant's own.
"""

import collections
import json
import os
import random
import re
import select
import subprocess
import sys
import time
from pathlib import Path

from account import MIB, WORKER, nvml_library
from h200 import HERE, REPOSITORY, argument_parser, machine, record
from sharing import Node

QUOTA = 1024 * MIB
MARGIN = 64 * MIB  # 8 for code that contexts reserve, 32 that a worker tolerates, and pages
EVERY_MS = 20
HEADER = '.version 8.0\n.target sm_80\n.address_size 64\n'
KERNEL = (
    '\n.visible .entry k(.param .u64 p) { .reg .b64 %r<3>; '
    'mov.u64 %r1, BIG; ld.param.u64 %r2, [p]; st.global.u64 [%r2], %r1; ret; }\n'
)
SOURCE = '''#include <cstdio>
__device__ int variable[3000000]; __device__ int given[3] = {1, 2, 3};
__constant__ float constant[10];
__device__ __align__(4096) char aligned[10];
extern "C" __global__ void one(float *x) {
  __shared__ float shared[100];
  shared[threadIdx.x] = x[0] + variable[5] + given[1] + constant[2] + aligned[3];
  __syncthreads();
  x[threadIdx.x] = shared[3];
}
extern "C" __global__ void two(int *x) { x[threadIdx.x] = given[threadIdx.x % 3]++; }
'''
SIZES = [
    '256',
    '0x40000000',
    '0x20000000U',
    '010000000000',
    '0b1000000000000000000000000000000',
    '1073741824',
    '16777216',
    '09',
    '64*64',
    '18446744073709551680',
    '4294967296',
    '5000000000',
    '0x7fffffffffffffff',
]
FRAGMENTS = [
    '/*',
    '*/',
    '//',
    '"',
    '\\',
    '\n',
    '.global',
    '.const',
    '.extern ',
    '.weak ',
    '.common ',
    '.visible ',
    '.b8',
    '.b64',
    '.v4 .f32',
    '.align 1048576',
    '.align 1073741824',
    '.file 1 "/*"\n',
    '.file 2 "*/"\n',
    '{',
    '}',
    ';',
    '[',
    ']',
    '[]',
    ' = {1, 2}',
    '.managed',
    '.global .b8 z[0x30000000];',
    '.section .debug_str { .b8 1 }',
    '.loc 1 2 3 ',
    '.target sm_90',
    '.pragma "x";',
    '#',
    '\f',
    '@@',
    '::',
]


def texts():
    """PTX that declares up to GiB in ways that a simple parser underestimates."""
    for size in SIZES:
        yield f'.visible .global .b8 BIG[{size}];' + KERNEL
    for size in ('0x30000000', '0x50000000'):
        big = f'.visible .global .b8 BIG[{size}];'
        yield from (
            text + KERNEL
            for text in [
                f'.file 1 "/*"\n{big}\n.file 2 "*/"',
                f'/* /* */ {big}',
                f'/*/ */{big}',
                f'// \\\n{big}',
                f'.file 1 "\\\\" {big}',
                f'.file 1 "a\nb" {big}',
                f'# 1 "a"\n{big}',
                f'.visible.global.b8 BIG[{size}];',
                f'.extern .global .b8 BIG[{size}];',
                f'.weak .global .b8 BIG[{size}];',
                f'.common .global .b8 BIG[{size}];',
                f'.global .attribute(.managed) .b8 BIG[{size}];',
                f'.global .b8 BIG[4], other[{size}];',
                f'.global .b8 BIG[4];.global .b8 other[16][16][{hex(int(size, 16) // 256)}];',
            ]
        )
        yield KERNEL.replace('{ .reg', f'{{ {big} .reg')
        yield KERNEL.replace('{ .reg', f'{{ .loc 1 2 3 {big} .reg')
    yield '.global .align 536870912 .b8 BIG[64];' + KERNEL
    yield ''.join(
        f'.global .b8 v{i}[1153434];' for i in range(300)
    ) + '.global .b8 BIG[1];' + KERNEL
    yield ''.join(f'.global .b8 v{i};' for i in range(20000)) + '.global .b8 BIG[1];' + KERNEL


def compiled(nvcc, directory):
    source = directory / 'source.cu'
    source.write_text(SOURCE)
    ways = [['-ptx'], ['-cubin', '-arch=sm_90'], ['-cubin', '-arch=sm_90', '-rdc=true']]
    ways += [
        [
            '--fatbin',
            f'--compress-mode={mode}',
            '-gencode',
            'arch=compute_90,code=[sm_90,compute_90]',
        ]
        for mode in ('none', 'speed', 'size')
    ]
    for i, way in enumerate(ways):
        target = directory / f'compiled-{i}'
        subprocess.run([str(nvcc), *way, str(source), '-o', str(target)], check=True)
        yield target.read_bytes()


def mutated(image, chance):
    """Changes a number or a fragment of a text, or a byte, word or length of other data."""
    if image.lstrip().startswith(b'.version') or image.lstrip().startswith(b'//'):
        text = image.decode('latin1')
        for _ in range(chance.randint(1, 3)):
            numbers = list(re.finditer(r'\b\d+\b', text))
            if numbers and chance.random() < 0.5:
                number = chance.choice(numbers)
                text = text[:number.start()] + chance.choice(SIZES) + text[number.end():]
            else:
                at = chance.randrange(len(text))
                text = (
                    text[:at] + chance.choice(FRAGMENTS) + text[at + chance.choice([0, 0, 1, 8]) :]
                )
        return text.encode('latin1')
    content = bytearray(image)
    for _ in range(chance.randint(1, 3)):
        # Lengths are in headers: at the beginning, and in the section table of an ELF file.
        at = chance.choice(
            [
                chance.randrange(min(256, len(content))),
                chance.randrange(len(content)),
                chance.randrange(len(content) * 2 // 3, len(content)),
            ]
        )
        width = chance.choice([1, 2, 4, 8])
        at = min(at // width * width, len(content) - width)
        value = chance.choice(
            [
                0,
                1,
                2,
                7,
                8,
                0x7F,
                0xFF,
                0x1000,
                0x40000000,
                2**32 - 1,
                2**63,
                2**64 - 1,
                chance.getrandbits(64),
            ]
        )
        content[at:at + width] = (value % 256**width).to_bytes(width, 'little')
    return bytes(content)


def wrappers():
    """The magic number of a wrapper, followed by pointers that the client chose."""
    for version in (1, 2):
        for pointer in (0, 0x4141414141414141, 0x2aaaaaaaa000, 0x7fffffffe000):
            yield b'\xb1\x43\x62\x46' + version.to_bytes(4, 'little') + pointer.to_bytes(
                8, 'little'
            ) * 2 + bytes(64)


def corpus(nvcc, directory, count):
    chance = random.Random(17)
    whole = [(HEADER + text).encode('latin1') for text in texts()]
    built = list(compiled(nvcc, directory))
    images = [*whole, *built, *wrappers()]
    seeds = built + chance.sample(whole, 12) + built
    images += [mutated(seeds[i % len(seeds)], chance) for i in range(max(0, count - len(images)))]
    paths = []
    for i, image in enumerate(images):
        paths.append(directory / f'image-{i:03}')
        paths[-1].write_bytes(image)
    return paths


class Watch:
    """Reads NVML's figures of processes repeatedly."""

    def __init__(self, node, backend):
        simulated = (
            ['--simulated-state', next(str(path) for path in Path(node.state).rglob('*simulated*'))]
            if backend != 'real'
            else []
        )
        library = (
            nvml_library()
            if backend == 'real'
            else str(WORKER.parent.parent / 'simulator' / 'libsimulator-nvml.so.1')
        )
        self.process = subprocess.Popen(
            [str(WORKER), '--processes', library, '--watch', str(EVERY_MS), *simulated],
            stdout=subprocess.PIPE,
        )
        self.rest = b''

    def held(self, pid):
        """Bytes by the second next line: the next one may have been started before."""
        while select.select([self.process.stdout], [], [], 0)[0]:
            self.rest = os.read(self.process.stdout.fileno(), 1 << 20)
        lines = 0
        self.rest = b''
        while lines < 3:
            self.rest += os.read(self.process.stdout.fileno(), 1 << 20)
            lines = self.rest.count(b'\n')
        line = self.rest.split(b'\n')[lines - 1]
        return sum(
            one['memory']
            for gpu in json.loads(line)['gpus']
            for one in gpu['processes']
            if one['pid'] == pid
        )

    def close(self):
        self.process.kill()
        self.process.wait()


class Tenant:
    """A program of the allocation, and its worker."""

    def __init__(self, program, node, allocation, watch):
        libraries = str(REPOSITORY / 'build' / 'release' / 'interposer')
        environment = {
            **os.environ,
            'NVIDIA_VIRTUAL_SOCKET': allocation['socketPath'],
            'LD_LIBRARY_PATH': libraries,
        }
        self.process = subprocess.Popen(
            [str(program)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        first = json.loads(self.process.stdout.readline())
        use = json.loads(node.command('ls', '--state', node.state, '-o', 'json'))
        [session] = [
            one
            for each in use['allocations']
            if each['id'] == allocation['id']
            for one in each['sessions']
        ]
        self.pid = int(session['workerPid'])
        self.beyond = watch.held(self.pid) - first['used']  # the context

    def tell(self, line):
        """None if the session has ended."""
        try:
            self.process.stdin.write(line + '\n')
            self.process.stdin.flush()
            ready = select.select([self.process.stdout], [], [], 20)[0]
            answer = json.loads(self.process.stdout.readline() or '{}') if ready else {}
        except (BrokenPipeError, json.JSONDecodeError):
            answer = {}
        return answer if answer.get('lives') else None

    def close(self):
        self.process.kill()
        self.process.communicate()
        time.sleep(0.3)


def main():
    parser = argument_parser(__doc__)
    parser.add_argument('--count', type=int, default=300, help='images')
    parser.add_argument('--seconds', type=float, default=60, help='no more images after that')
    arguments = parser.parse_args()
    directory = arguments.build.resolve() / 'images'
    directory.mkdir(parents=True, exist_ok=True)
    nvcc = record.find_nvcc()
    program = directory / 'images'
    subprocess.run(
        [
            str(nvcc),
            '-std=c++20',
            '-O2',
            f'-L{record.runtime_directory(nvcc)}',
            '-o',
            str(program),
            'images.cu',
        ],
        cwd=HERE / 'programs',
        check=True,
    )
    paths = corpus(nvcc, directory, arguments.count)
    report = {'machine': machine() if arguments.backend == 'real' else 'simulated', 'images': []}
    node = Node(arguments.backend)
    allocation = json.loads(
        node.command('create', '--state', node.state, '-o', 'json', '--memory', str(QUOTA))
    )
    tenant = watch = None
    begin = time.monotonic()
    try:
        for i, path in enumerate(paths):
            if time.monotonic() - begin > arguments.seconds:
                break
            watch = watch or Watch(node, arguments.backend)
            tenant = tenant or Tenant(program, node, allocation, watch)
            before = time.monotonic()
            answer = tenant.tell(f"{'library' if i % 2 else 'module'} {path}")
            outcome = {
                'image': path.name,
                'ended': answer is None,
                'seconds': time.monotonic() - before,
            }
            if answer:
                held = watch.held(tenant.pid) - tenant.beyond
                outcome.update(status=answer['status'], held=held, charged=answer['used'],
                               violation=held > answer['used'] + MARGIN or held > QUOTA + MARGIN)
            report['images'].append(outcome)
            if not answer or tenant.tell('unload') is None:
                tenant.close()
                tenant = None
    finally:
        if tenant:
            tenant.close()
        if watch:
            watch.close()
        log = (Path(node.state) / 'log').read_text()
        node.close()
    arguments.json.write_text(json.dumps(report, indent=1) + '\n')
    images = report['images']
    violations = [one for one in images if one.get('violation')]
    statuses = collections.Counter('ended' if one['ended'] else one['status'] for one in images)
    print(f'{len(images)} of {len(paths)} images; by result: {dict(statuses)}')
    for one in violations:
        print(
            f"VIOLATION {one['image']}: holds {one['held'] / MIB:.1f} MiB, "
            f"charged {one['charged'] / MIB:.1f} MiB, result {one['status']}"
        )
    beyond = [(one['held'] - one['charged']) / MIB for one in images if not one['ended']]
    print(f'most held beyond what was charged: {max(beyond, default=0):.1f} MiB')
    print(
        'ended sessions: ' + (', '.join(one['image'] for one in images if one['ended']) or 'none')
    )
    second = [line for line in log.splitlines() if 'were ended: according to NVML' in line]
    print(f'the second check ended sessions {len(second)} times')
    sys.exit(1 if violations or second or len(images) < len(paths) // 2 else 0)


if __name__ == '__main__':
    main()
