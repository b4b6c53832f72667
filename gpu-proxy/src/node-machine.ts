import type { GpuRecord } from '@nvidia-virtual/ledger';
import { forGpu } from '@nvidia-virtual/service/configuration/kinds';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Configuration } from './configuration/schema.js';
import { type Backend, backendOf, chooseBackend, hostMachine } from './gpus/backend.js';
import { linkDriver } from './gpus/driver-libraries.js';
import { takeInventory } from './gpus/inventory.js';
import { copyNvidiaSmi } from './gpus/nvidia-smi.js';
import { Addon } from './host/addon.js';
import { findHostNamespaces } from './host/host-namespaces.js';
import { type Installation, installOnHost, locateInstallation } from './host/installation.js';
import { DIRECT, HostLauncher, type Launcher, queryOnHost } from './host/launcher.js';
import type { StateDirectory } from './host/state-directory.js';
import { checkSlots, type SlotSettings, type SlotSize } from './pods/slots.js';

/** The parts of the machine that start workers. */
export interface NodeMachine {
  readonly installation: Installation;
  readonly launcher: Launcher;
  readonly backend: Backend;
}

/**
 * Finds the build, the launcher and the backend of workers. In Kubernetes, all three belong to the
 * host. @throws ProxyError BUILD_MISSING, VERSION_MISSING, HOST_NOT_REACHED, BACKEND_NOT_REAL
 */
export async function prepareMachine(
  { backend: choice, kubernetes }: Configuration,
  state: StateDirectory,
  logger: Logger,
): Promise<NodeMachine> {
  const { enabled, placement, versions, kubeletRoot, driverRoot } = kubernetes;
  const built = locateInstallation();
  if (!enabled || placement === 'none')
    return {
      installation: built,
      backend: backendOf(chooseBackend(choice, built), state),
      launcher: DIRECT,
    };
  const installation = installOnHost(built, versions);
  const namespaces = await findHostNamespaces(new Addon(built.addon), kubeletRoot);
  const onHost = (file: string) => queryOnHost(built.launcher, namespaces, file);
  const backend = backendOf(
    chooseBackend(choice, installation, hostMachine(namespaces.root, driverRoot, onHost)),
    state,
  );
  copyNvidiaSmi(backend, state.directory, namespaces.root, logger);
  const { allocations, arbiter, simulatedState } = state;
  const launcher = new HostLauncher({
    executable: built.launcher,
    namespaces,
    libraries: linkDriver(backend, state.driver, namespaces.root),
    devices: backend.devices,
    files: { allocations, shared: [arbiter, simulatedState], driver: backend.driver },
    logger,
  });
  return { installation, backend, launcher };
}

/**
 * The inventory of a node that starts now. @throws ProxyError INVENTORY_FAILED, SLOT_MEMORY_SMALL
 */
export async function takeNodeInventory(
  machine: NodeMachine,
  configuration: Configuration,
): Promise<GpuRecord[]> {
  const { gpu: selection = [], gpuMode, kubernetes } = configuration;
  const gpus = await takeInventory({
    ...machine,
    gpus: selection,
    mode: (gpu) => forGpu(gpuMode, gpu, 'exclusive'),
  });
  if (kubernetes.enabled) checkSlots(gpus, slotSettingsOf(configuration));
  return gpus;
}

export function slotSettingsOf(configuration: Configuration): SlotSettings {
  const { warmWorkers, oversubscription } = configuration;
  return {
    ...slotSizeOf(configuration),
    warmWorkers: (gpu) => forGpu(warmWorkers, gpu, 0),
    oversubscription: (gpu) => forGpu(oversubscription, gpu, 1),
  };
}

export function slotSizeOf({ slotsPerGpu, slotMemory }: Configuration): SlotSize {
  return { slotsPerGpu, slotMemory };
}

/**
 * Warns of options for GPUs that the node does not have. No error: several nodes may share one
 * configuration file.
 */
export function warnOfUnknownGpus(
  gpus: readonly GpuRecord[],
  { gpu: selection = [], gpuMode, warmWorkers, oversubscription }: Configuration,
  logger: Logger,
): void {
  const known = new Set(gpus.flatMap(({ uuid, index }) => [uuid.toLowerCase(), String(index)]));
  const list = gpus.map(({ index, uuid }) => `${index} (${uuid})`).join(', ');
  // Indices of `gpu` count the GPUs of the machine, those of the other options the node's.
  const uuids = selection.filter((name) => !/^\d+$/.test(name)).map((name) => name.toLowerCase());
  for (const [key, names] of Object.entries({
    gpu: uuids,
    gpuMode: gpuMode.some.keys(),
    warmWorkers: warmWorkers.some.keys(),
    oversubscription: oversubscription.some.keys(),
  }))
    for (const name of names)
      if (!known.has(name))
        logger.warn({ key }, new ProxyError('GPU_UNKNOWN', { name, gpus: list }).message);
}

/**
 * Says which GPUs the configuration selects. A GPU that is missing although the selection is the
 * same has failed. The number of simulated GPUs is part of it: one that is missing then was removed
 * by configuration.
 */
export function describeSelection({ kind }: Backend, { gpu = [] }: Configuration): string {
  const count = process.env['NVIDIA_VIRTUAL_SIMULATED_GPUS'];
  const simulated = kind === 'simulated' && count !== undefined ? [`of ${count}`] : [];
  return [kind, ...simulated, ...gpu].join(' ');
}
