import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { ProxyError, systemReason } from './errors.js';
import type { Installation } from './installation.js';

export const BACKEND_CHOICES = ['auto', 'real', 'simulated'] as const;
export type BackendChoice = (typeof BACKEND_CHOICES)[number];

export interface Backend {
  readonly kind: 'real' | 'simulated';
  /** The CUDA driver that the workers load. */
  readonly driver: string;
  /** Directory that workers are to see as /dev; undefined: they see the devices where they are. */
  readonly devices?: string;
}

/** What of the machine decides whether there is a real GPU; a test gives its own. */
export interface Machine {
  /** Directories to look for NVIDIA's devices in, first one first. */
  readonly deviceDirectories: readonly string[];
  /** @throws a system error when the device cannot be used, as far as this process can tell. */
  checkDevice(file: string): void;
  /** Directories to look for libcuda.so.1 in, first one first. */
  libraryDirectories(): string[];
  /** By which workers reach a file that was found here, where they see other files than this process. */
  pathOnHost?(file: string): string;
}

const DEVICES = '/dev';
/** Without it there is no GPU of NVIDIA's. */
const CONTROL_DEVICE = 'nvidiactl';
const DEFAULT_DIRECTORIES = ['/usr/lib/x86_64-linux-gnu', '/usr/lib64', '/usr/lib', '/usr/local/nvidia/lib64'];

/** Where the images of nodes put it that have no package manager. */
const HOST_DIRECTORIES = ['/home/kubernetes/bin/nvidia/lib64', '/opt/nvidia/lib64', '/usr/lib/nvidia'];

export const THIS_MACHINE: Machine = {
  deviceDirectories: [DEVICES],
  checkDevice: (file) => accessSync(file, constants.R_OK | constants.W_OK),
  libraryDirectories: () => [...fromEnvironment(), ...fromLoaderCache(), ...DEFAULT_DIRECTORIES],
};

/**
 * The host, seen from a container that has neither its devices nor its libraries. The kernel refuses such a container any access to a device, even
 * the question whether it may: only that it is there can be seen. Workers are not in the container's cgroup.
 * @param root where its files are seen
 * @param driverRoot where on the host the driver is installed: another one with drivers that are containers themselves. Those make the devices in
 *   their own /dev, and nobody need have made them in the host's; NVIDIA's own tools look there first too.
 */
export function hostMachine(root: string, driverRoot: string): Machine {
  return {
    deviceDirectories: [...new Set([path.join(root, driverRoot, DEVICES), path.join(root, DEVICES)])],
    checkDevice: (file) => void statSync(file),
    libraryDirectories: () => [...DEFAULT_DIRECTORIES, ...HOST_DIRECTORIES].map((directory) => path.join(root, driverRoot, directory)),
    pathOnHost: (file) => path.join('/', path.relative(root, file)),
  };
}

export function chooseBackend(choice: BackendChoice, installation: Installation, machine = THIS_MACHINE): Backend {
  const simulated = { kind: 'simulated', driver: installation.simulatedDriver } as const;
  if (choice === 'simulated') return simulated;
  const { directory, reason } = findDevices(machine);
  const driver = directory === undefined ? undefined : findDriver(machine.libraryDirectories(), installation.interposerDirectory);
  const onHost = machine.pathOnHost ?? ((file: string) => file);
  if (driver !== undefined && directory !== undefined) return { kind: 'real', driver: onHost(driver), ...shown(onHost(directory)) };
  if (choice === 'auto') return simulated;
  throw new ProxyError('BACKEND_NOT_REAL', { reason: reason ?? 'libcuda.so.1 of the NVIDIA driver is not installed' });
}

/** The first directory with devices, or why there is none. */
function findDevices({ deviceDirectories, checkDevice }: Machine): { readonly directory?: string; readonly reason?: string } {
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

/** The driver knows no other directory than /dev. */
function shown(devices: string): Pick<Backend, 'devices'> {
  return devices === DEVICES ? {} : { devices };
}

/** The host's libcuda.so.1, never our own stand-in for it (which LD_LIBRARY_PATH may name). */
function findDriver(directories: string[], interposerDirectory: string): string | undefined {
  const ours = path.resolve(interposerDirectory);
  return directories
    .filter((directory) => directory !== '' && path.resolve(directory) !== ours)
    .map((directory) => path.join(directory, 'libcuda.so.1'))
    .filter((file) => existsSync(file))
    .find((file) => !isSameFile(file, path.join(ours, 'libcuda.so.1')));
}

/** By what it is: a path through another mount namespace means another file when it is resolved here. */
function isSameFile(one: string, other: string): boolean {
  const [a, b] = [statSync(one), statSync(other, { throwIfNoEntry: false })];
  return a.ino === b?.ino && a.dev === b.dev;
}

function fromEnvironment(): string[] {
  return (process.env['LD_LIBRARY_PATH'] ?? '').split(':');
}

/** The loader's cache knows where distributions put it; without ldconfig the default directories must do. */
function fromLoaderCache(): string[] {
  try {
    const cache = execFileSync('/sbin/ldconfig', ['-p'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return [...cache.matchAll(/^\s+libcuda\.so\.1 \(.*x86-64.*\) => (.+)$/gm)].map((match) => path.dirname(match[1] as string));
  } catch {
    return [];
  }
}
