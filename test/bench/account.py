#!/usr/bin/env python3
"""Compares the charged memory with NVML, for programs that each allocate in one way.

  account.py --build DIR --json FILE

Needs python3, nvcc, node, NVML and the built tree.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from h200 import HERE, REPOSITORY, argument_parser, json_lines, machine, record
from sharing import Node

WAYS = [
    'idle',
    'allocations',
    'pieces',
    'pool',
    'streams',
    'freed_streams',
    'events',
    'local_memory',
    'heap',
    'second_context',
]
TORCH = (
    'import sys, torch; x = [torch.randn(2048, 2048, device="cuda") for _ in range(64)]; '
    'y = x[0] @ x[1]; torch.cuda.synchronize();'
    'print("ready", flush=True); sys.stdin.read()'
)
MIB = 1 << 20
MOST = 64 * MIB  # of which 8 MiB for code, and rounding of a context
WORKER = (
    Path(os.environ.get('NVIDIA_VIRTUAL_BUILD', REPOSITORY / 'build' / 'release'))
    / 'native'
    / 'worker'
    / 'nvidia-virtual-worker'
)


def nvml_library():
    for line in subprocess.run(
        ['/sbin/ldconfig', '-p'], capture_output=True, text=True
    ).stdout.splitlines():
        if 'libnvidia-ml.so.1' in line and 'x86-64' in line:
            return line.split('=> ')[1]
    return '/usr/local/nvidia/lib64/libnvidia-ml.so.1'


def reported(pid):
    """Memory of a process on all GPUs in bytes, or None if NVML does not know it."""
    answer = subprocess.run(
        [str(WORKER), '--processes', nvml_library()], capture_output=True, text=True, timeout=30
    )
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr)
    found = [
        process['memory']
        for gpu in json.loads(answer.stdout)['gpus']
        for process in gpu['processes']
        if process['pid'] == pid
    ]
    return sum(found) if found else None


def compare(node, name, command, allocation=None):
    """One program, in an allocation or natively without an account."""
    process = subprocess.Popen(
        command,
        env=allocation and allocation['environment'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if 'ready' not in process.stdout.readline():
            return {'name': name, 'error': process.stderr.read()[-500:]}
        if not allocation:
            return {'name': name, 'native': reported(process.pid)}
        time.sleep(0.3)  # a worker updates its charge for pools ten times a second
        use = json.loads(node.command('ls', '--state', node.state, '-o', 'json'))
        [session] = [
            one
            for each in use['allocations']
            if each['id'] == allocation['id']
            for one in each['sessions']
        ]
        context = use['gpus'][0]['contextMemoryBytes']
        held = reported(int(session['workerPid']))
        counted = int(session['memoryBytes'])
        return {'name': name, 'counted': counted, 'context': int(context), 'nvml': held,
                'unaccounted': None if held is None else held - counted - int(context)}
    finally:
        process.communicate(timeout=60)


def allocate(node):
    created = json.loads(
        node.command('create', '--state', node.state, '-o', 'json', '--memory', '8GiB')
    )
    libraries = str(REPOSITORY / 'build' / 'release' / 'interposer')
    return {
        'id': created['id'],
        'environment': {
            **os.environ,
            'NVIDIA_VIRTUAL_SOCKET': created['socketPath'],
            'LD_LIBRARY_PATH': libraries,
            'TRITON_LIBCUDA_PATH': libraries,
        },
    }


def main():
    parser = argument_parser(__doc__)
    arguments = parser.parse_args()
    directory = arguments.build.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / 'account'
    nvcc = record.find_nvcc()
    subprocess.run(
        [
            str(nvcc),
            '-std=c++17',
            '-O2',
            '-arch=sm_90',
            f'-L{record.runtime_directory(nvcc)}',
            '-o',
            str(program),
            'account.cu',
        ],
        cwd=HERE / 'programs',
        check=True,
    )
    cost = json_lines(
        subprocess.run([str(program), 'cost'], capture_output=True, text=True, check=True).stdout
    )
    commands = {
        **{way: [str(program), way] for way in WAYS},
        'torch': [sys.executable, '-c', TORCH],
    }
    report = {'machine': machine(), 'cost': cost, 'programs': []}
    node = Node(arguments.backend)
    try:
        for name, command in commands.items():
            outcome = {
                **compare(node, name, command),
                **compare(node, name, command, allocate(node)),
            }
            outcome['holds'] = (
                outcome.get('unaccounted') is not None and abs(outcome['unaccounted']) <= MOST
            )
            report['programs'].append(outcome)
    finally:
        node.close()
    arguments.json.write_text(json.dumps(report, indent=1) + '\n')
    for line in cost:
        print(f"{line['name']}: {line['value']:.0f} {line['unit']}")
    mib = lambda value: '-' if value is None else f'{value / MIB:.1f}'
    print(
        f"{'MiB':16} {'counted':>10} {'context':>10} {'NVML':>10} {'native':>10}"
        f" {'unaccounted':>12}"
    )
    for one in report['programs']:
        figures = [
            mib(one.get(key)) for key in ('counted', 'context', 'nvml', 'native', 'unaccounted')
        ]
        print(
            '{:16} {:>10} {:>10} {:>10} {:>10} {:>12}'.format(one['name'], *figures),
            '' if one['holds'] else one.get('error', 'DOES NOT HOLD'),
        )
    sys.exit(0 if all(one['holds'] for one in report['programs']) else 1)


if __name__ == '__main__':
    main()
