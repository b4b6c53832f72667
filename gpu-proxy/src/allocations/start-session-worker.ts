import type { Socket } from 'node:net';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { readGrant } from '@nvidia-virtual/node-state/grant';
import { driverOf } from '../gpus/backend.js';
import { workerOf } from '../host/installation.js';
import type { Tenant } from '../host/launcher.js';
import type { SessionFiles } from '../sessions/session-files.js';
import {
  startWorker,
  type Worker,
  type WorkerListener,
  type WorkerOptions,
  workerArguments,
} from '../workers/worker.js';
import type { AllocationDirectory } from './allocation-directory.js';
import type { AllocationHost } from './allocation-host.js';

interface SessionStart {
  readonly host: AllocationHost;
  readonly directory: AllocationDirectory;
  readonly record: SessionRecord;
  readonly connection: Socket;
  readonly files: SessionFiles;
  /** Whether it may be a warm worker. */
  readonly mayBeWarm: boolean;
}

/**
 * Gives the connection to a warm worker, or starts a cold one. A later gpu-proxy finds a cold
 * worker by its command line, and a warm one by the record, which is written before it serves.
 * @throws ProxyError VERSION_MISSING, or a system error
 */
export function startSessionWorker(start: SessionStart, listener: WorkerListener): Worker {
  const { host, record, connection, files } = start;
  const { specification } = start.directory;
  const build = otherBuild(start);
  const options = workerOptions(start);
  const tenant = tenantOf(start);
  const suits = start.mayBeWarm && build === undefined && specification.shownAs === undefined;
  const warm = suits ? host.takeWarmWorker(specification.gpus) : undefined;
  try {
    if (warm) {
      files.writeRecord({ ...record, worker: warm.identity });
      if (tenant) host.launcher.move(warm.identity.pid, tenant);
      return warm.assign(options, connection, files.openForWorker(host.addon), listener);
    }
  } catch (error) {
    host.logger.warn(
      { allocation: specification.id, name: specification.name },
      `a warm worker could not be given a program: ${(error as Error).message}`,
    );
    warm?.dismiss();
    files.writeRecord(record);
  }
  const command = host.launcher.command(
    workerOf(host.installation, build),
    workerArguments(options),
    { tenant, mpsPipes: options.mps?.pipes },
  );
  return startWorker(command, connection, files.openForWorker(host.addon), listener);
}

/** The pod whose cgroups a worker gets. Undefined: those of the node. */
export function tenantOf({
  directory,
  record: { client },
}: Pick<SessionStart, 'directory' | 'record'>): Tenant | undefined {
  const { owner } = directory.specification;
  return owner && { podUid: owner.podUid, pid: client.pid };
}

/** The program of the workers of an allocation. @throws ProxyError VERSION_MISSING */
export function workerProgram(start: Pick<SessionStart, 'directory' | 'host'>): string {
  return workerOf(start.host.installation, otherBuild(start));
}

/** The build of the container's library; undefined if it is the build of this gpu-proxy. */
function otherBuild({
  directory,
  host,
}: Pick<SessionStart, 'directory' | 'host'>): string | undefined {
  const build = readGrant(directory.path)?.build;
  return build === host.installation.version ? undefined : build;
}

/** A program also sees the GPU on which its allocation began, if none may move any more. */
function otherPlaces({ host, directory }: SessionStart): string[] {
  const { gpus, shownAs } = directory.specification;
  const places = new Set(host.otherPlaces(gpus));
  return [...(shownAs === undefined ? places : places.add(shownAs))];
}

function workerOptions(start: SessionStart): WorkerOptions {
  const { host, directory, record, files } = start;
  const { specification } = directory;
  const { memory, gpus, shownAs, limits, uid, mode, trace } = specification;
  const contextMemory = host.cost('contextMemory', gpus);
  const { slot } = record;
  return {
    ...driverOf(host.backend),
    memoryLimit: memory,
    quotaPath: directory.quota,
    slot,
    sharing: directory.sharing,
    gpus: shownAs === undefined ? gpus : [shownAs],
    place: shownAs === undefined ? undefined : gpus[0],
    otherPlaces: otherPlaces(start),
    limits,
    uid,
    summary: trace === 'summary',
    movesManaged: host.movesManaged(),
    contextMemory,
    streamMemory: host.cost('streamMemory', gpus),
    heapMemory: host.cost('heapMemory', gpus),
    mps: host.mpsClient(specification),
    // Admission reserves one context per allocation: slot 0 uses it, so it is not charged.
    contextCharge: slot === 0 ? 0 : contextMemory,
    arbiter: mode === 'exclusive' ? host.arbiterSocket : undefined,
    figures: files.figures,
    cache: host.ownCaches ? directory.cache : undefined,
    allocations: host.launcher.allocations,
  };
}
