#!/usr/bin/env python3
"""Lists, builds, runs and records the conformance programs.

Needs python3, a C compiler and nvcc, nothing else.

  record.py list                 prints the builds of all programs as JSON, with source hashes
  record.py build DIR            compiles all of them into DIR
  record.py record DIR OUT.tar   compiles into DIR, runs each on the GPU of this machine through a
                                 pipe, and writes an archive (unpack it into
                                 test/conformance/recordings); --only NAME,... for some of them

A build is a line in the first file of a program, `// conformance: KEY=VALUE...`. Keys are optional:

  build=NAME         the name of the build
  flags="..."        flags of the compiler
  files=b.cu         further source files
  memory=64MiB       the quota under which the product runs it
  managed=moves      managed memory moves to the GPU; without root it stays in host memory
  gpus=2             how many GPUs it needs, and how many simulated ones it gets; a machine with
                     fewer GPUs skips it
  unordered=PREFIX   consecutive lines that begin with PREFIX are sorted before they are compared,
                     because CUDA leaves their order open
  alone=yes          the program reads the GPU's free memory, so nothing else may run beside it
  judges=itself      the program checks its own result and exits with status 0 if it is right. It
                     needs no recording; one that exists is compared as well.
"""

import argparse
import datetime
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
PROGRAMS = HERE / 'programs'
RUN_SECONDS = 60


def sources_of(names):
    """The named files and all files that they include with quotes, each once."""
    found = []
    pending = list(names)
    while pending:
        name = pending.pop(0)
        if name in found:
            continue
        found.append(name)
        pending += re.findall(r'#include "([^"]+)"', (PROGRAMS / name).read_text())
    return found


def hash_of(sources, flags):
    digest = hashlib.sha256(' '.join(flags).encode())
    for name in sources:
        digest.update(b'\0' + name.encode() + b'\0' + (PROGRAMS / name).read_bytes())
    return digest.hexdigest()


def builds():
    result = []
    for path in sorted(PROGRAMS.glob('*.cu')):
        for line in re.findall(r'^// conformance:(.*)$', path.read_text(), re.MULTILINE):
            words = dict(word.split('=', 1) for word in shlex.split(line))
            unknown = set(words) - {
                'build',
                'flags',
                'files',
                'memory',
                'managed',
                'gpus',
                'unordered',
                'alone',
                'judges',
            }
            if unknown:
                sys.exit(
                    f'{path}: unknown words in its conformance line: {", ".join(sorted(unknown))}'
                )
            files = [path.name] + [name for name in words.get('files', '').split(',') if name]
            flags = words.get('flags', '').split()
            name = path.stem + ('.' + words['build'] if 'build' in words else '')
            result.append(
                {
                    'name': name,
                    'files': files,
                    'flags': flags,
                    'hash': hash_of(sources_of(files), flags),
                    'memory': words.get('memory'),
                    'managed': words.get('managed'),
                    'gpus': int(words.get('gpus', 1)),
                    'unordered': words.get('unordered'),
                    'alone': 'alone' in words,
                    'judgesItself': 'judges' in words,
                }
            )
    return result


def find_nvcc():
    home = os.environ.get('CUDA_HOME')
    candidates = [Path(home) / 'bin' / 'nvcc'] if home else []
    candidates += [Path(found) for found in [shutil.which('nvcc')] if found]
    candidates += [Path('/usr/local/cuda/bin/nvcc')]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    sys.exit('nvcc was not found: put it on PATH or set CUDA_HOME')


def runtime_directory(nvcc):
    for name in ('lib64', 'lib'):
        directory = nvcc.parent.parent / name
        if list(directory.glob('libcudart.so*')):
            return directory
    sys.exit(f'{nvcc}: no libcudart.so in lib64 or lib beside it')


def driver_functions():
    """The functions in the specification of the driver API: programs may link only with these."""
    calls = (REPOSITORY / 'cuda-api' / 'calls').glob('*.yaml')
    return sorted(
        name
        for path in calls
        for name in re.findall(r'^- call: (cu\w+)', path.read_text(), re.MULTILINE)
    )


def prepare_libraries(directory, nvcc):
    """A linker directory without driver and toolkit: a stub libcuda.so, libcudart.so."""
    libraries = directory / 'lib'
    libraries.mkdir(parents=True, exist_ok=True)
    source = libraries / 'stub.c'
    source.write_text(''.join(f'void {name}(void) {{}}\n' for name in driver_functions()))
    stub = [
        'cc',
        '-shared',
        '-fPIC',
        '-fno-builtin',
        '-Wl,-soname,libcuda.so.1',
        '-o',
        str(libraries / 'libcuda.so'),
        str(source),
    ]
    subprocess.run(stub, check=True)
    runtime = sorted(
        runtime_directory(nvcc).glob('libcudart.so.*'), key=lambda path: len(path.name)
    )[0]
    for name in ('libcudart.so', runtime.name):
        link = libraries / name
        if link.is_symlink():
            link.unlink()
        link.symlink_to(runtime)
    return libraries


def compile_one(build, directory, nvcc, libraries):
    """Compiles if the sources changed. Returns the binary, or the compiler's output."""
    binary = directory / build['name']
    mark = directory / (build['name'] + '.hash')
    if binary.exists() and mark.exists() and mark.read_text() == build['hash']:
        return binary, None
    where = [f'-L{libraries}', f'-L{runtime_directory(nvcc)}', '-o', str(binary)]
    command = [str(nvcc), '-std=c++17', '-O2', *build['flags'], *where, *build['files']]
    done = subprocess.run(
        command, cwd=PROGRAMS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        return binary, done.stdout
    mark.write_text(build['hash'])
    return binary, None


def compile_all(directory, only=None):
    directory.mkdir(parents=True, exist_ok=True)
    nvcc = find_nvcc()
    libraries = prepare_libraries(directory, nvcc)
    everything = [build for build in builds() if not only or build['name'] in only]
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 2)) as pool:
        outcomes = list(
            pool.map(lambda build: compile_one(build, directory, nvcc, libraries), everything)
        )
    failed = [
        (build['name'], output)
        for build, (_, output) in zip(everything, outcomes)
        if output is not None
    ]
    for name, output in failed:
        print(f'{name} does not compile:\n{output}', file=sys.stderr)
    print(
        f'{len(everything) - len(failed)} of {len(everything)} programs compiled', file=sys.stderr
    )
    return everything, bool(failed), runtime_directory(nvcc)


def sort_unordered(text, prefix):
    if not prefix:
        return text
    lines = text.split('\n')
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and lines[end].startswith(prefix):
            end += 1
        lines[start:end] = sorted(lines[start:end])
        start = max(end, start + 1)
    return '\n'.join(lines)


def gpu_facts():
    command = ['nvidia-smi', '--query-gpu=name,driver_version', '--format=csv,noheader']
    query = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    name, driver = query.stdout.splitlines()[0].split(', ')
    return name, driver


def gpu_count():
    query = subprocess.run(
        ['nvidia-smi', '--list-gpus'], stdout=subprocess.PIPE, text=True, check=True
    )
    return len(re.findall(r'^GPU \d+:', query.stdout, re.MULTILINE))


def run_one(build, directory, runtime):
    path = os.pathsep.join([str(runtime), os.environ.get('LD_LIBRARY_PATH', '')]).rstrip(os.pathsep)
    environment = dict(os.environ, LD_LIBRARY_PATH=path)
    with tempfile.TemporaryDirectory() as scratch:
        process = subprocess.Popen(
            [str(directory / build['name'])],
            cwd=scratch,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            stdout, stderr = (
                data.decode(errors='backslashreplace')
                for data in process.communicate(timeout=RUN_SECONDS)
            )
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return sort_unordered(stdout, build['unordered']), stderr, process.returncode


def recording(build, outcome, facts):
    stdout, stderr, status = outcome
    name, driver = facts
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    head = (
        f'program: {build["name"]}\nhash: {build["hash"]}\n'
        f'gpu: {name}\ndriver: {driver}\ndate: {date}\nexit: {status}\n'
    )
    return (
        f'{head}stdout: {len(stdout.encode())} bytes\n{stdout}\n'
        f'stderr: {len(stderr.encode())} bytes\n{stderr}\n'
    )


def record(directory, archive, only):
    everything, failed, runtime = compile_all(directory, only)
    facts, gpus = gpu_facts(), gpu_count()
    with tarfile.open(archive, 'w') as tar:
        for build in everything:
            if build['gpus'] > gpus:
                print(f'{build["name"]}: skipped, it needs {build["gpus"]} GPUs', file=sys.stderr)
                continue
            try:
                outcome = run_one(build, directory, runtime)
                if run_one(build, directory, runtime) != outcome:
                    print(
                        f'{build["name"]}: two runs differ, so it is not recorded', file=sys.stderr
                    )
                    failed = True
                    continue
            except (OSError, subprocess.TimeoutExpired) as error:
                print(f'{build["name"]}: {error}', file=sys.stderr)
                failed = True
                continue
            data = recording(build, outcome, facts).encode()
            entry = tarfile.TarInfo(build['name'] + '.txt')
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
            print(
                f'{build["name"]}: exit {outcome[2]}, {len(outcome[0].splitlines())} lines',
                file=sys.stderr,
            )
    return failed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest='command', required=True)
    commands.add_parser('list')
    commands.add_parser('build').add_argument('directory', type=Path)
    recorder = commands.add_parser('record')
    recorder.add_argument('directory', type=Path)
    recorder.add_argument('archive', type=Path)
    recorder.add_argument('--only', type=lambda names: names.split(','))
    arguments = parser.parse_args()
    if arguments.command == 'list':
        print(json.dumps(builds(), indent=1))
    elif arguments.command == 'build':
        sys.exit(compile_all(arguments.directory.resolve())[1])
    else:
        sys.exit(record(arguments.directory.resolve(), arguments.archive, arguments.only))


if __name__ == '__main__':
    main()
