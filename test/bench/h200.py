#!/usr/bin/env python3
"""Measures on a machine with a GPU, natively and through the product in one run.

Needs python3, nvcc, node and the built tree.

  h200.py --build DIR --json FILE   calls and copies
  h200.py --frameworks --json FILE  PyTorch, Transformers, CuPy, JAX: results and ratio of times
"""

import argparse
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / 'conformance'))
import record  # finds the compiler and the libraries to link

PROGRAMS = ['first_kernel', 'launches', 'copies', 'module_load', 'graph_replay']
FRAMEWORKS = ['torch_operations', 'resnet50_train', 'gpt2_generate', 'cupy_sum', 'jax_sum']
ROUNDS = 3
# Limits of remoted / native: maximum for times, minimum for bandwidths.
LIMITS = {
    '20,000 launches and the final synchronize': 1.05,
    'launch, 500 in a row': 0.2,
    'launch and synchronize': 1.05,
    'pinned 256 MiB copy, host to device': 0.98,
    'pinned 256 MiB copy, device to host': 0.98,
    'pageable 64 MiB copy, host to device': 1.0,
    'pageable 64 MiB copy, device to host': 1.0,
    'pageable 1 GiB copy, host to device': 1.0,
    'pageable 1 GiB copy, device to host': 1.0,
}


def build_all(directory):
    directory.mkdir(parents=True, exist_ok=True)
    nvcc = record.find_nvcc()
    sources = HERE / 'programs'
    for name in PROGRAMS:
        flags = ['-std=c++17', '-O2', '-arch=sm_90', f'-L{record.runtime_directory(nvcc)}']
        subprocess.run(
            [str(nvcc), *flags, '-o', str(directory / name), f'{name}.cu'], cwd=sources, check=True
        )
    subprocess.run(
        [
            str(nvcc),
            '-cubin',
            '-arch=sm_90',
            '-o',
            str(directory / 'module.cubin'),
            'module_image.cu',
        ],
        cwd=sources,
        check=True,
    )


def run(command, remoted, seconds, cwd=None):
    """Output and error of the command, run natively or through the product."""
    if remoted:
        proxy = REPOSITORY / 'gpu-proxy' / 'bin' / 'gpu-proxy.js'
        command = ['node', str(proxy), 'run', '--backend', 'real', '--', *command]
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        return stdout, f'not done after {seconds} s\n{stderr[-2000:]}'
    return stdout, (
        f'exit status {process.returncode}\n{stderr[-2000:]}' if process.returncode != 0 else None
    )


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith('{')]


def machine():
    name, driver = record.gpu_facts()
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {
        'gpu': name,
        'driver': driver,
        'cores': os.cpu_count(),
        'kernel': platform.release(),
        'date': date,
    }


def measure_calls(directory):
    """Native and remoted runs alternate on the same machine. The median of each figure counts."""
    build_all(directory)
    seen, units, errors = {}, {}, []
    for _ in range(ROUNDS):
        for name in PROGRAMS:
            arguments = [str(directory / 'module.cubin')] if name == 'module_load' else []
            for where in ('native', 'remoted'):
                output, error = run([str(directory / name), *arguments], where == 'remoted', 100)
                if error:
                    errors.append(f'{name}, {where}: {error}')
                    print(errors[-1], file=sys.stderr)
                for line in json_lines(output):
                    seen.setdefault(line['name'], {}).setdefault(where, []).append(line['value'])
                    units[line['name']] = line['unit']
    figures = [compared(name, units[name], values) for name, values in seen.items()]
    return {'machine': machine(), 'figures': figures, 'errors': errors}


def compared(name, unit, values):
    figure = {'name': name, 'unit': unit}
    for where, list_of in values.items():
        figure[where] = statistics.median(list_of)
    if len(values) < 2:
        return figure
    figure['ratio'] = figure['remoted'] / figure['native']
    if name in LIMITS:
        higher = unit == 'GB/s'
        figure['limit'] = ('>= ' if higher else '<= ') + str(LIMITS[name])
        figure['holds'] = (
            figure['ratio'] >= LIMITS[name] if higher else figure['ratio'] <= LIMITS[name]
        )
    return figure


def measure_framework(name, seconds):
    """Equal: the remoted run printed the same results as the native one, byte for byte."""
    outcome = {'name': name}
    for where in ('native', 'remoted'):
        start = time.monotonic()
        output, error = run(
            [sys.executable, f'{name}.py'], where == 'remoted', seconds, cwd=HERE / 'frameworks'
        )
        lines = json_lines(output)
        if error or not lines:
            outcome[where] = {'error': error or 'it printed no result'}
        else:
            outcome[where] = {**lines[-1], 'whole': time.monotonic() - start}
    native, remoted = outcome['native'], outcome['remoted']
    outcome['equal'] = 'results' in native and native.get('results') == remoted.get('results')
    if 'seconds' in native and 'seconds' in remoted:
        outcome['ratio'] = remoted['seconds'] / native['seconds']
    print(json.dumps(outcome), file=sys.stderr, flush=True)
    return outcome


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--build', type=Path, default=Path('/tmp/nvidia-virtual-bench'))
    parser.add_argument('--json', type=Path, required=True)
    parser.add_argument('--frameworks', action='store_true')
    parser.add_argument('--only', help='these frameworks only, separated by commas')
    parser.add_argument('--seconds', type=int, default=90, help='for one run of a framework script')
    arguments = parser.parse_args()
    if arguments.frameworks:
        names = arguments.only.split(',') if arguments.only else FRAMEWORKS
        report = {'machine': machine(), 'frameworks': []}
        for name in names:
            report['frameworks'].append(measure_framework(name, arguments.seconds))
            arguments.json.write_text(json.dumps(report, indent=1) + '\n')
        sys.exit(0 if all(one['equal'] for one in report['frameworks']) else 1)
    report = measure_calls(arguments.build.resolve())
    arguments.json.write_text(json.dumps(report, indent=1) + '\n')
    for figure in report['figures']:
        print(json.dumps(figure))
    sys.exit(
        0
        if not report['errors'] and all(figure.get('holds', True) for figure in report['figures'])
        else 1
    )


if __name__ == '__main__':
    main()
