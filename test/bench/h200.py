#!/usr/bin/env python3
"""Measures on a machine with a GPU, natively and through the product in one run.

Needs python3, nvcc, node and the built tree.

  h200.py --build DIR --json FILE
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
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / 'conformance'))
import record  # finds the compiler and the libraries to link

PROGRAMS = ['launches', 'threads', 'copies', 'module_load', 'graph_replay']
ROUNDS = 9
# Limits of remoted / native: maximum for times, minimum for bandwidths and rates.
LIMITS = {
    '20,000 launches and the final synchronize': 1.05,
    'launch, 500 in a row': 0.2,
    'launch and synchronize': 1.02,
    'event query': 1.0,
    'stream query': 1.0,
    '8 threads launching to 8 streams': 1.0,
    'pinned 256 MiB copy, host to device': 0.98,
    'pinned 256 MiB copy, device to host': 0.98,
    'pageable 4 KiB copy, host to device': 1.0,
    'pageable 4 KiB copy, host to device, 100 in a row': 1.0,
    'pageable 4 KiB copy, device to host': 1.0,
    'pageable 64 MiB copy, host to device': 1.0,
    'pageable 64 MiB copy, device to host': 1.0,
    'pageable 1 GiB copy, host to device': 1.0,
    'pageable 1 GiB copy, device to host': 1.0,
    'module load, find, unload': 1.2,
    'graph of 100 kernels, synchronized': 1.01,
    'graph of 100 kernels, in a row': 1.01,
}
HIGHER_IS_BETTER = {'GB/s', '1/s'}


def argument_parser(description):
    """With the options that all measurements have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--build', type=Path, default=Path('/tmp/nvidia-virtual-bench'))
    parser.add_argument('--json', type=Path, required=True)
    parser.add_argument('--backend', default='real', help='simulated: only to try this script')
    return parser


def build_all(directory):
    directory.mkdir(parents=True, exist_ok=True)
    nvcc = record.find_nvcc()
    sources = HERE / 'programs'
    for name in PROGRAMS:
        flags = ['-std=c++20', '-O2', '-arch=sm_90', f'-L{record.runtime_directory(nvcc)}']
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


def remoted_command(command, options):
    proxy = REPOSITORY / 'gpu-proxy' / 'bin' / 'gpu-proxy.js'
    return ['node', str(proxy), 'run', *options, '--', *command]


def run(command, remoted, seconds, cwd=None, options=('--backend', 'real')):
    """Output and error of the command, run natively or by `gpu-proxy run` with the options."""
    if remoted:
        command = remoted_command(command, options)
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
    """Native and remoted runs alternate on the same machine. The medians count. The ratio is the
    median of the ratios of a native run and the remoted one behind it: processors that slow down
    for seconds, as those of virtual machines do, often slow down both."""
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
    rounds = [
        remoted / native
        for native, remoted in zip(values['native'], values['remoted'], strict=False)
    ]
    figure['ratio'] = statistics.median(rounds)
    figure['spread'] = [min(rounds), max(rounds)]
    if name in LIMITS:
        higher = unit in HIGHER_IS_BETTER
        figure['limit'] = ('>= ' if higher else '<= ') + str(LIMITS[name])
        figure['holds'] = (
            figure['ratio'] >= LIMITS[name] if higher else figure['ratio'] <= LIMITS[name]
        )
    return figure


def print_table(figures):
    print(f"{'figure':42} {'native':>10} {'remoted':>10} {'unit':4} {'ratio':>7}  spread, limit")
    for one in figures:
        cells = [f'{one[where]:.4g}' if where in one else '-' for where in ('native', 'remoted')]
        line = f"{one['name']:42} {cells[0]:>10} {cells[1]:>10} {one['unit']:4}"
        if 'ratio' in one:
            line += f" {one['ratio']:7.3f}  {one['spread'][0]:.3f} to {one['spread'][1]:.3f}"
        if 'limit' in one:
            line += f", {one['limit']}: {'holds' if one['holds'] else 'DOES NOT HOLD'}"
        print(line)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--build', type=Path, default=Path('/tmp/nvidia-virtual-bench'))
    parser.add_argument('--json', type=Path, required=True)
    arguments = parser.parse_args()
    report = measure_calls(arguments.build.resolve())
    arguments.json.write_text(json.dumps(report, indent=1) + '\n')
    print_table(report['figures'])
    sys.exit(
        0
        if not report['errors'] and all(figure.get('holds', True) for figure in report['figures'])
        else 1
    )


if __name__ == '__main__':
    main()
