import type { GpuRecord, SharingMode } from '@nvidia-virtual/ledger';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import type { Installation } from '../host/installation.js';
import { type Command, DIRECT, type Launcher } from '../host/launcher.js';
import { runCommand } from '../host/run-command.js';
import { type Backend, driverArguments } from './backend.js';

const PATIENCE_MS = 120_000;

interface ListOptions {
  readonly installation: Installation;
  readonly backend: Backend;
  readonly launcher?: Launcher | undefined;
  /** Timeout for the driver. */
  readonly patienceMs?: number;
}

interface InventoryOptions extends ListOptions {
  /** Indices or UUIDs of the GPUs that the node may use; empty: all. */
  readonly gpus: readonly string[];
  /** By default every GPU is `exclusive`. */
  mode?(gpu: Omit<GpuRecord, 'mode'>): SharingMode;
}

/**
 * Reads the inventory of GPUs in a separate process: gpu-proxy never loads the driver.
 * @throws ProxyError INVENTORY_FAILED
 */
export async function takeInventory({
  installation,
  backend,
  launcher = DIRECT,
  gpus,
  mode = () => 'exclusive',
  patienceMs = PATIENCE_MS,
}: InventoryOptions): Promise<GpuRecord[]> {
  const present = await withoutMissing(gpus, { installation, backend, launcher, patienceMs });
  const args = [
    '--inventory',
    ...driverArguments(backend),
    ...present.flatMap((gpu) => ['--gpu', gpu]),
  ];
  const line = await output(launcher.command(installation.worker, args, 'query'), patienceMs);
  try {
    const records = (JSON.parse(line) as { gpus: Omit<GpuRecord, 'mode'>[] }).gpus;
    return records.map(
      ({ uuid, index, name, memory, contextMemory, streamMemory = 0, heapMemory = 0 }) => {
        const gpu = { uuid, index, name, memory, contextMemory, streamMemory, heapMemory };
        return { ...gpu, mode: mode(gpu) };
      },
    );
  } catch {
    throw new ProxyError('INVENTORY_FAILED', {
      reason: `the worker answered ${JSON.stringify(line.slice(0, 200))}`,
    });
  }
}

/**
 * The UUIDs that the driver lists, in its order. Creates no context.
 * @throws ProxyError INVENTORY_FAILED
 */
export async function listGpus({
  installation,
  backend,
  launcher = DIRECT,
  patienceMs = PATIENCE_MS,
}: ListOptions): Promise<string[]> {
  const args = ['--presence', ...driverArguments(backend)];
  const line = await output(launcher.command(installation.worker, args, 'query'), patienceMs);
  try {
    return (JSON.parse(line) as { gpus: { uuid: string }[] }).gpus.map(({ uuid }) => uuid);
  } catch {
    throw new ProxyError('INVENTORY_FAILED', {
      reason: `the worker answered ${JSON.stringify(line.slice(0, 200))}`,
    });
  }
}

/**
 * The listed UUIDs that takeInventory() would return, computed without the driver. The driver stops
 * at the first unknown index.
 * @param selection indices or UUIDs; empty: all.
 */
export function selectGpus(listed: readonly string[], selection: readonly string[]): string[] {
  if (selection.length === 0) return [...listed];
  const meant = presentOf(selection, listed).map((name) =>
    isUuid(name) ? findUuid(listed, name) : listed[Number(name)],
  );
  const unknown = meant.indexOf(undefined);
  return (unknown < 0 ? meant : meant.slice(0, unknown)) as string[];
}

async function withoutMissing(
  gpus: readonly string[],
  machine: ListOptions,
): Promise<readonly string[]> {
  if (!gpus.some(isUuid)) return gpus;
  const present = presentOf(gpus, await listGpus(machine));
  // An empty list would select all GPUs.
  return present.length > 0 ? present : gpus;
}

/**
 * Drops UUIDs that the driver does not list. The driver stops at the first unknown UUID, so a GPU
 * that failed, or that another node has, would hide the rest.
 */
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
    return await runCommand(command, patienceMs);
  } catch (error) {
    throw new ProxyError('INVENTORY_FAILED', { reason: systemReason(error) });
  }
}
