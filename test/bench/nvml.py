#!/usr/bin/env python3
"""Compares NVML through the product with the GPU's own, and shows nvidia-smi through the product.

For each GPU, every call of nvml/constants.def and nvml/readings.def must give the same bytes, and
so must the state of NVLink and of peers; what changes by itself, such as power, is only listed.
nvidia-smi runs beside a program that computes.

  nvml.py --json FILE [--backend simulated] [--smi PATH] [--packages DIR]

Needs python3, node and the built tree. nvidia-smi is used if present, and nvidia-ml-py in DIR only
with the real back end.
"""

import argparse
import ctypes
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILT = REPOSITORY / 'build' / 'release'
SIMULATED = BUILT / 'native' / 'simulator' / 'libsimulator-nvml.so.1'
QUOTA_GIB = 2
MIB = 1 << 20
HELD = 512 * MIB
QUERY = (
    'index,name,uuid,memory.total,memory.used,memory.free,utilization.gpu,temperature.gpu,'
    'power.draw,clocks.current.sm,driver_version,pci.bus_id,compute_mode,mig.mode.current'
)
SMI = [
    [],
    ['-L'],
    ['-q'],
    [f'--query-gpu={QUERY}', '--format=csv'],
    ['--query-compute-apps=pid,used_memory,name', '--format=csv'],
    ['dmon', '-c', '2'],
    ['pmon', '-c', '2'],
    ['pmon', '-s', 'm', '-c', '1'],
]
# These differ between two readings of an idle GPU.
CHANGING = re.compile(
    r'Power(Usage|State)|PerformanceState|Temperature|Clock(Info|/|s?Event|s?Throttle)|'
    r'Energy|BAR1|Pcie|FieldValues'
)
SPIN = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 n) {
  .reg .u64 %r<4>;
  .reg .pred %p;
  ld.param.u64 %r1, [n];
  mov.u64 %r2, 0;
again:
  add.u64 %r2, %r2, 1;
  setp.lt.u64 %p, %r2, %r1;
  @%p bra again;
  ret;
}
"""


def shapes():
    """(shape, call, words) of both lists."""
    for name in ('constants.def', 'readings.def'):
        text = (REPOSITORY / 'nvml' / name).read_text()
        for shape, words in re.findall(r'^([A-Z0-9_]+)\((nvml.*)\)$', text, re.M):
            call, *rest = (word.strip() for word in words.split(','))
            yield shape, call, rest


def keys_of(shape, words):
    counts = {'KEYED': 1, 'KEYED_TEXT': 1, 'KEYED2': 2, 'KEYED3': 3}.get(shape, 0)
    keys = [()]
    for count in words[:counts]:
        keys = [(*key, i) for key in keys for i in range(int(count))]
    return keys


def ask(nvml, device, shape, call, key):
    """Status and bytes. Every result is shorter than the buffers."""
    function = getattr(nvml, call, None)
    if function is None:
        return None
    buffers = [ctypes.create_string_buffer(128) for _ in range(4)]
    numbers = [ctypes.c_uint(each) for each in key]
    if shape == 'VERSIONED':
        return ask_versioned(function, device, buffers[0])
    length = [ctypes.c_uint(96)] if shape in ('TEXT', 'KEYED_TEXT') else []
    results = {'PAIR': 2, 'FOUR': 4}.get(shape, 1)
    status = function(device, *numbers, *buffers[:results], *length)
    return status, [each.raw.hex() for each in buffers] if status == 0 else []


def ask_versioned(function, device, buffer):
    """The size of the struct is part of its version: try each."""
    for size in range(8, 128, 4):
        buffer[0:4] = (size | 1 << 24).to_bytes(4, 'little')
        status = function(device, buffer)
        if status != 25:  # NVML_ERROR_ARGUMENT_VERSION_MISMATCH
            return status, [buffer.raw.hex()] if status == 0 else []
    return 25, []


def dump(library, packages):
    nvml = ctypes.CDLL(library)
    assert nvml.nvmlInit_v2() == 0, f'nvmlInit of {library} fails'
    devices = devices_of(nvml)
    answers = {}
    for index, device in enumerate(devices):
        for shape, call, words in shapes():
            for key in keys_of(shape, words):
                name = '/'.join([f'{index} {call}', *map(str, key)])
                answers[name] = ask(nvml, device, shape, call, key) or (3, [])
        for link in range(18):
            answers[f'{index} NVML_FI_DEV_NVLINK_GET_STATE/{link}'] = link_state(nvml, device, link)
        for other, peer in enumerate(devices):
            for capability in range(5):
                name = f'{index} nvmlDeviceGetP2PStatus/{other}/{capability}'
                answers[name] = peer_status(nvml, device, peer, capability)
    return {'calls': answers, 'pynvml': dump_package(packages) if packages else {}}


def devices_of(nvml):
    count = ctypes.c_uint()
    assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
    devices = [ctypes.c_void_p() for _ in range(count.value)]
    for index, device in enumerate(devices):
        assert nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0
    return devices


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t"""

    _fields_ = [
        ('field', ctypes.c_uint),
        ('scope', ctypes.c_uint),
        ('times', ctypes.c_longlong * 2),
        ('type', ctypes.c_uint),
        ('status', ctypes.c_uint),
        ('value', ctypes.c_ulonglong),
    ]


def link_state(nvml, device, link):
    value = FieldValue(field=165, scope=link)
    status = nvml.nvmlDeviceGetFieldValues(device, 1, ctypes.byref(value)) or value.status
    return status, [value.value] if status == 0 else []


def peer_status(nvml, device, peer, capability):
    answer = ctypes.c_uint()
    status = nvml.nvmlDeviceGetP2PStatus(device, peer, capability, ctypes.byref(answer))
    return status, [answer.value] if status == 0 else []


def dump_package(packages):
    """What nvidia-ml-py shows of the getters that need only a device."""
    sys.path.insert(0, packages)
    import pynvml

    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    shown = {}
    for name, function in inspect.getmembers(pynvml, callable):
        if not re.match('nvmlDeviceGet(?!Handle)', name):
            continue
        words = inspect.signature(function).parameters.values()
        if sum(word.default is word.empty for word in words) != 1:
            continue
        try:
            shown[name] = re.sub(' at 0x[0-9a-f]+', '', str(function(device)))
        except Exception as error:  # pynvml has a class for each status
            shown[name] = f'! {error}'
    return shown


def compute(commands):
    """Holds memory and keeps the GPU busy while the commands run."""
    cuda = ctypes.CDLL('libcuda.so.1')

    def must(name, *words):
        status = getattr(cuda, name)(*words)
        assert status == 0, f'{name}: {status}'

    context, module, function = (ctypes.c_void_p() for _ in range(3))
    memory, count = ctypes.c_uint64(), ctypes.c_uint64(10_000_000)
    must('cuInit', 0)
    must('cuDevicePrimaryCtxRetain', ctypes.byref(context), 0)
    must('cuCtxSetCurrent', context)
    must('cuMemAlloc_v2', ctypes.byref(memory), ctypes.c_size_t(HELD))
    must('cuModuleLoadData', ctypes.byref(module), SPIN)
    must('cuModuleGetFunction', ctypes.byref(function), module, b'spin')
    words = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(count), ctypes.c_void_p))

    def spin(until):
        while not until():
            must('cuLaunchKernel', function, *[1] * 6, 0, None, words, None)
            must('cuCtxSynchronize')

    warm = time.monotonic() + 4  # utilisation is a mean over two seconds
    spin(lambda: time.monotonic() > warm)
    for command in commands:
        print('\n$', *command, flush=True)
        child = subprocess.Popen(command)
        spin(lambda child=child: child.poll() is not None)
        print('status', child.returncode, flush=True)


def through_product(backend, *words):
    proxy = REPOSITORY / 'gpu-proxy' / 'bin' / 'gpu-proxy.js'
    memory = f'{QUOTA_GIB}GiB'
    return ['node', str(proxy), 'run', '--backend', backend, '--memory', memory, '--', *words]


def compare(native, ours):
    """Names of calls with other answers: those that change by themselves, and the rest."""
    differing = [name for name in native if native[name] != ours[name]]
    changing = [name for name in differing if CHANGING.search(name)]
    return changing, [name for name in differing if name not in changing]


def show_smi(arguments):
    smi = arguments.smi or shutil.which('nvidia-smi')
    if smi is None:
        print('nvidia-smi is not here')
        return
    commands = json.dumps([[smi, *words] for words in SMI])
    itself = [sys.executable, __file__, '--compute', commands]
    if arguments.backend == 'real':
        print('=== nvidia-smi natively', flush=True)
        subprocess.run(itself)
    print('=== nvidia-smi through the product', flush=True)
    subprocess.run(through_product(arguments.backend, *itself))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--json')
    parser.add_argument('--build', help='not used')
    parser.add_argument('--backend', default='real', choices=['real', 'simulated'])
    parser.add_argument('--smi', help='path of nvidia-smi')
    parser.add_argument('--packages', help='directory of nvidia-ml-py')
    parser.add_argument('--dump', help='library to ask')
    parser.add_argument('--compute', help='commands to run beside kernels')
    arguments = parser.parse_args()
    if arguments.compute:
        return compute(json.loads(arguments.compute))
    if arguments.dump:
        return print(json.dumps(dump(arguments.dump, arguments.packages)))
    library = 'libnvidia-ml.so.1'
    own = library if arguments.backend == 'real' else str(SIMULATED)
    use_package = arguments.packages and arguments.backend == 'real'
    packages = ['--packages', arguments.packages] if use_package else []
    asking = [sys.executable, __file__, *packages, '--dump']
    native = json.loads(subprocess.check_output([*asking, own]))
    ours = json.loads(
        subprocess.check_output(through_product(arguments.backend, *asking, library))
    )
    changing, wrong = compare(native['calls'], ours['calls'])
    equal = len(native['calls']) - len(changing) - len(wrong)
    print(f'{equal} answers are equal; these change by themselves and differ: {changing}')
    for name in wrong:
        print(f'{name}: native {native["calls"][name]}, ours {ours["calls"][name]}')
    for name, shown in sorted(native['pynvml'].items()):
        if shown != ours['pynvml'].get(name):
            print(f'{name}: native {shown[:200]}, ours {str(ours["pynvml"].get(name))[:200]}')
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({'native': native, 'ours': ours}))
    show_smi(arguments)
    return 1 if wrong else 0


if __name__ == '__main__':
    os.environ['PYTHONUNBUFFERED'] = '1'
    sys.exit(main())
