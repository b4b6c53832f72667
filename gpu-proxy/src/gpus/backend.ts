import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import type { Installation } from '../host/installation.js';
import type { Command } from '../host/launcher.js';
import { type Modprobe, makeDeviceFiles, NVIDIA_MODPROBE } from './device-files.js';

export const BACKEND_CHOICES = ['auto', 'real', 'simulated'] as const;
type BackendChoice = (typeof BACKEND_CHOICES)[number];

export interface Backend {
  readonly kind: 'real' | 'simulated';
  /** The CUDA driver that the workers load. */
  readonly driver: string;
  /**
   * State of simulated GPUs, shared by all processes of the node; undefined: each process has its
   * own.
   */
  readonly simulatedState?: string;
  /** Directory that workers see as /dev; undefined: /dev itself. */
  readonly devices?: string;
}

/** The options of a worker that select the driver. */
export type DriverChoice = Pick<Backend, 'driver' | 'simulatedState'>;

export function driverOf({ driver, simulatedState }: Backend): DriverChoice {
  return { driver, ...(simulatedState === undefined ? {} : { simulatedState }) };
}

export function driverArguments({ driver, simulatedState }: DriverChoice): string[] {
  return [
    '--driver',
    driver,
    ...(simulatedState === undefined ? [] : ['--simulated-state', simulatedState]),
  ];
}

/** The backend of a node, whose workers share the state of simulated GPUs. */
export function backendOf(
  backend: Backend,
  { simulatedState }: { readonly simulatedState: string },
): Backend {
  return backend.kind === 'simulated' ? { ...backend, simulatedState } : backend;
}

/** The properties of a machine that decide whether it has a real GPU. Tests replace it. */
export interface Machine {
  /** Directories to search for NVIDIA's devices, in this order. */
  readonly deviceDirectories: readonly string[];
  /** @throws a system error if the device cannot be used, as far as this process can tell */
  checkDevice(file: string): void;
  /** Directories to search for libcuda.so.1, in this order. */
  libraryDirectories(): string[];
  /**
   * Converts a path of this process to the path that workers use, if their root directory differs.
   */
  pathOnHost?(file: string): string;
  /** Undefined: the devices are made by others. */
  readonly modprobe?: Modprobe;
}

const DEVICES = '/dev';
/** Exists on every machine with the NVIDIA driver loaded. */
const CONTROL_DEVICE = 'nvidiactl';
/** The first CUDA program creates it. */
const MEMORY_DEVICE = 'nvidia-uvm';
const DEFAULT_DIRECTORIES = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib64',
  '/usr/lib',
  '/usr/local/nvidia/lib64',
];

/** Directories in node images without a package manager. */
const HOST_DIRECTORIES = [
  '/home/kubernetes/bin/nvidia/lib64',
  '/opt/nvidia/lib64',
  '/usr/lib/nvidia',
];

export const THIS_MACHINE: Machine = {
  deviceDirectories: [DEVICES],
  checkDevice: (file) => accessSync(file, constants.R_OK | constants.W_OK),
  libraryDirectories: () => [...fromEnvironment(), ...fromLoaderCache(), ...DEFAULT_DIRECTORIES],
  modprobe: { file: NVIDIA_MODPROBE, command: [NVIDIA_MODPROBE, []] },
};

/**
 * The host, seen from a container without its devices and libraries. The kernel refuses the
 * container access to devices, and even access(), so only their existence is checked. Workers are
 * outside of the container's cgroup and can open them.
 * @param root path of the host's root directory in this container
 * @param driverRoot path of the driver's root directory on the host. It differs from `/` for driver
 * containers, which create the devices in their own /dev. NVIDIA's tools also search there first.
 * @param onHost the command line that runs a program of the host there
 */
export function hostMachine(
  root: string,
  driverRoot: string,
  onHost: (file: string) => Command,
): Machine {
  const modprobe = {
    file: path.join(root, NVIDIA_MODPROBE),
    command: onHost(NVIDIA_MODPROBE),
  };
  return {
    deviceDirectories: [
      ...new Set([path.join(root, driverRoot, DEVICES), path.join(root, DEVICES)]),
    ],
    checkDevice: (file) => void statSync(file),
    libraryDirectories: () =>
      [...DEFAULT_DIRECTORIES, ...HOST_DIRECTORIES].map((directory) =>
        path.join(root, driverRoot, directory),
      ),
    pathOnHost: (file) => path.join('/', path.relative(root, file)),
    ...(driverRoot === '/' ? { modprobe } : {}),
  };
}

export function chooseBackend(
  choice: BackendChoice,
  installation: Installation,
  machine = THIS_MACHINE,
): Backend {
  const simulated = { kind: 'simulated', driver: installation.simulatedDriver } as const;
  if (choice === 'simulated') return simulated;
  if (choice === 'auto' && !mayHaveDevices(machine)) return simulated;
  const driver = findDriver(machine.libraryDirectories(), installation.interposerDirectory);
  const { directory, reason } =
    driver === undefined ? findDevices(machine) : findOrMakeDevices(machine);
  const onHost = machine.pathOnHost ?? ((file: string) => file);
  if (driver !== undefined && directory !== undefined)
    return { kind: 'real', driver: onHost(driver), ...shown(onHost(directory)) };
  if (choice === 'auto') return simulated;
  throw new ProxyError('BACKEND_NOT_REAL', {
    reason: reason ?? 'libcuda.so.1 of the NVIDIA driver is not installed',
  });
}

/** The directory with devices, or the reason why there is none. */
interface Found {
  readonly directory?: string;
  readonly reason?: string;
}

/** Quick, unlike the search for the driver: most machines without a GPU have neither. */
function mayHaveDevices(machine: Machine): boolean {
  const { modprobe } = machine;
  return findDevices(machine).directory !== undefined || existsSync(modprobe?.file ?? '');
}

function findOrMakeDevices(machine: Machine): Found {
  const { modprobe, deviceDirectories } = machine;
  const found = findDevices(machine);
  const exists = (name: string) =>
    deviceDirectories.some((directory) => existsSync(path.join(directory, name)));
  if (modprobe === undefined || (exists(CONTROL_DEVICE) && exists(MEMORY_DEVICE))) return found;
  const failed = makeDeviceFiles(modprobe);
  if (failed === undefined) return findDevices(machine);
  return found.directory === undefined ? { reason: `${found.reason}, and ${failed}` } : found;
}

function findDevices({ deviceDirectories, checkDevice }: Machine): Found {
  const reasons: string[] = [];
  for (const directory of deviceDirectories) {
    const file = path.join(directory, CONTROL_DEVICE);
    try {
      checkDevice(file);
      return { directory };
    } catch (error) {
      reasons.push(`${file}: ${systemReason(error)}`);
    }
  }
  return { reason: reasons.join('; ') };
}

/** The driver opens devices in /dev only, so another directory must be mounted there. */
function shown(devices: string): Pick<Backend, 'devices'> {
  return devices === DEVICES ? {} : { devices };
}

/** The host's libcuda.so.1, never the interposer, which may be in LD_LIBRARY_PATH. */
function findDriver(directories: string[], interposerDirectory: string): string | undefined {
  const ours = path.resolve(interposerDirectory);
  return directories
    .filter((directory) => directory !== '' && path.resolve(directory) !== ours)
    .map((directory) => path.join(directory, 'libcuda.so.1'))
    .filter((file) => existsSync(file))
    .find((file) => !isSameFile(file, path.join(ours, 'libcuda.so.1')));
}

/**
 * Compares inodes, because a path through another mount namespace cannot be resolved here.
 */
function isSameFile(one: string, other: string): boolean {
  const [a, b] = [statSync(one), statSync(other, { throwIfNoEntry: false })];
  return a.ino === b?.ino && a.dev === b.dev;
}

function fromEnvironment(): string[] {
  return (process.env['LD_LIBRARY_PATH'] ?? '').split(':');
}

/**
 * Directories of libcuda.so.1 in the loader's cache. Empty without ldconfig.
 */
function fromLoaderCache(): string[] {
  try {
    const cache = execFileSync('/sbin/ldconfig', ['-p'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return [...cache.matchAll(/^\s+libcuda\.so\.1 \(.*x86-64.*\) => (.+)$/gm)].map((match) =>
      path.dirname(match[1] as string),
    );
  } catch {
    return [];
  }
}
