import { execFile } from 'node:child_process';
import type { GpuRecord, SharingMode } from '@nvidia-virtual/ledger';
import type { Backend } from './backend.js';
import { ProxyError } from './errors.js';
import type { Installation } from './installation.js';
import { DIRECT, type Launcher } from './launcher.js';

const TIME_LIMIT_MS = 120_000;

export interface InventoryOptions {
  readonly installation: Installation;
  readonly backend: Backend;
  readonly launcher?: Launcher | undefined;
  /** Indices or UUIDs of those that the node may use; empty: all. */
  readonly gpus: readonly string[];
  /** By default every GPU is `exclusive`. */
  mode?(gpu: Omit<GpuRecord, 'mode'>): SharingMode;
}

/** Asks the driver, in a process that ends again: no proxy ever loads it. @throws ProxyError INVENTORY_FAILED */
export async function takeInventory({
  installation,
  backend,
  launcher = DIRECT,
  gpus,
  mode = () => 'exclusive',
}: InventoryOptions): Promise<GpuRecord[]> {
  const args = ['--inventory', '--driver', backend.driver, ...gpus.flatMap((gpu) => ['--gpu', gpu])];
  const line = await output(...launcher.command(installation.worker, args));
  try {
    const records = (JSON.parse(line) as { gpus: Omit<GpuRecord, 'mode'>[] }).gpus;
    return records.map(({ uuid, index, name, memory, contextMemory, streamMemory = 0, heapMemory = 0 }) => {
      const gpu = { uuid, index, name, memory, contextMemory, streamMemory, heapMemory };
      return { ...gpu, mode: mode(gpu) };
    });
  } catch {
    throw new ProxyError('INVENTORY_FAILED', { reason: `the worker answered ${JSON.stringify(line.slice(0, 200))}` });
  }
}

/** The UUIDs that the driver sees now, without a context on any of them. @throws ProxyError INVENTORY_FAILED */
export async function listGpus({ installation, backend, launcher = DIRECT, gpus }: InventoryOptions): Promise<string[]> {
  const args = ['--presence', '--driver', backend.driver, ...gpus.flatMap((gpu) => ['--gpu', gpu])];
  const line = await output(...launcher.command(installation.worker, args));
  try {
    return (JSON.parse(line) as { gpus: { uuid: string }[] }).gpus.map(({ uuid }) => uuid);
  } catch {
    throw new ProxyError('INVENTORY_FAILED', { reason: `the worker answered ${JSON.stringify(line.slice(0, 200))}` });
  }
}

function output(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { timeout: TIME_LIMIT_MS, killSignal: 'SIGKILL' }, (error, stdout, stderr) => {
      const reason = stderr.trim().split('\n').at(-1) || error?.message || '';
      if (error) reject(new ProxyError('INVENTORY_FAILED', { reason }));
      else resolve(stdout);
    });
  });
}
