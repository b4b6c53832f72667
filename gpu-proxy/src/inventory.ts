import type { GpuRecord, SharingMode } from '@nvidia-virtual/ledger';
import type { Backend } from './backend.js';
import { ProxyError, systemReason } from './errors.js';
import { inquire } from './inquiry.js';
import type { Installation } from './installation.js';
import { type Command, DIRECT, type Launcher } from './launcher.js';

const PATIENCE_MS = 120_000;

export interface ListOptions {
  readonly installation: Installation;
  readonly backend: Backend;
  readonly launcher?: Launcher | undefined;
  /** A driver that hangs must not hang us. */
  readonly patienceMs?: number;
}

export interface InventoryOptions extends ListOptions {
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

/** The UUIDs that the driver sees now, in its order, without a context on any of them. @throws ProxyError INVENTORY_FAILED */
export async function listGpus({ installation, backend, launcher = DIRECT, patienceMs = PATIENCE_MS }: ListOptions): Promise<string[]> {
  const args = ['--presence', '--driver', backend.driver];
  const line = await output(launcher.command(installation.worker, args), patienceMs);
  try {
    return (JSON.parse(line) as { gpus: { uuid: string }[] }).gpus.map(({ uuid }) => uuid);
  } catch {
    throw new ProxyError('INVENTORY_FAILED', { reason: `the worker answered ${JSON.stringify(line.slice(0, 200))}` });
  }
}

/**
 * Which of the listed UUIDs takeInventory() would find, so that the driver need not be asked again; it shows nothing of what follows an index
 * that it does not know.
 * @param selection indices or UUIDs; empty: all.
 */
export function selectGpus(listed: readonly string[], selection: readonly string[]): string[] {
  if (selection.length === 0) return [...listed];
  const meant = presentOf(selection, listed).map((name) => (isUuid(name) ? findUuid(listed, name) : listed[Number(name)]));
  const unknown = meant.indexOf(undefined);
  return (unknown < 0 ? meant : meant.slice(0, unknown)) as string[];
}

async function withoutMissing(gpus: readonly string[], machine: ListOptions): Promise<readonly string[]> {
  if (!gpus.some(isUuid)) return gpus;
  const present = presentOf(gpus, await listGpus(machine));
  // None at all would mean every one.
  return present.length > 0 ? present : gpus;
}

/** A driver shows nothing of what follows a UUID that it does not know: one GPU that has failed, or is another node's, would hide others. */
function presentOf(gpus: readonly string[], listed: readonly string[]): string[] {
  return gpus.filter((name) => !isUuid(name) || findUuid(listed, name) !== undefined);
}

function isUuid(name: string): boolean {
  return /^GPU-/i.test(name);
}

function findUuid(listed: readonly string[], name: string): string | undefined {
  return listed.find((uuid) => uuid.toLowerCase() === name.toLowerCase());
}

async function output(command: Command, patienceMs: number): Promise<string> {
  try {
    return await inquire(command, patienceMs);
  } catch (error) {
    throw new ProxyError('INVENTORY_FAILED', { reason: systemReason(error) });
  }
}
