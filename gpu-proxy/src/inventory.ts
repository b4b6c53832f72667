import type { GpuRecord, SharingMode } from '@nvidia-virtual/ledger';
import type { Backend } from './backend.js';
import { ProxyError, systemReason } from './errors.js';
import { inquire } from './inquiry.js';
import type { Installation } from './installation.js';
import { type Command, DIRECT, type Launcher } from './launcher.js';

const PATIENCE_MS = 120_000;

export interface InventoryOptions {
  readonly installation: Installation;
  readonly backend: Backend;
  readonly launcher?: Launcher | undefined;
  /** Indices or UUIDs of those that the node may use; empty: all. */
  readonly gpus: readonly string[];
  /** A driver that hangs must not hang us. */
  readonly patienceMs?: number;
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
  patienceMs = PATIENCE_MS,
}: InventoryOptions): Promise<GpuRecord[]> {
  const present = await withoutMissing(gpus, { installation, backend, launcher, patienceMs });
  const args = ['--inventory', '--driver', backend.driver, ...present.flatMap((gpu) => ['--gpu', gpu])];
  const line = await output(launcher.command(installation.worker, args), patienceMs);
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
export async function listGpus(options: InventoryOptions): Promise<string[]> {
  const { installation, backend, launcher = DIRECT, gpus, patienceMs = PATIENCE_MS } = options;
  const present = await withoutMissing(gpus, { installation, backend, launcher, patienceMs });
  const args = ['--presence', '--driver', backend.driver, ...present.flatMap((gpu) => ['--gpu', gpu])];
  const line = await output(launcher.command(installation.worker, args), patienceMs);
  try {
    return (JSON.parse(line) as { gpus: { uuid: string }[] }).gpus.map(({ uuid }) => uuid);
  } catch {
    throw new ProxyError('INVENTORY_FAILED', { reason: `the worker answered ${JSON.stringify(line.slice(0, 200))}` });
  }
}

/** A driver shows nothing of what follows a UUID that it does not know: one GPU that has failed, or is another node's, would hide others. */
async function withoutMissing(gpus: readonly string[], machine: Omit<InventoryOptions, 'gpus'>): Promise<readonly string[]> {
  const isUuid = (name: string) => /^GPU-/i.test(name);
  if (!gpus.some(isUuid)) return gpus;
  const listed = await listGpus({ ...machine, gpus: [] });
  const present = gpus.filter((name) => !isUuid(name) || listed.some((uuid) => uuid.toLowerCase() === name.toLowerCase()));
  // None at all would mean every one.
  return present.length > 0 ? present : gpus;
}

async function output(command: Command, patienceMs: number): Promise<string> {
  try {
    return await inquire(command, patienceMs);
  } catch (error) {
    throw new ProxyError('INVENTORY_FAILED', { reason: systemReason(error) });
  }
}
