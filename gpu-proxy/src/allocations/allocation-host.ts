import type { Socket } from 'node:net';
import type {
  AllocationSpecification,
  DriverMemory,
  SessionRecord,
  SessionUse,
} from '@nvidia-virtual/ledger';
import type { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Arenas } from '../arenas/arenas.js';
import type { Backend } from '../gpus/backend.js';
import type { Addon } from '../host/addon.js';
import type { Installation } from '../host/installation.js';
import type { Launcher } from '../host/launcher.js';
import type { MpsClient } from '../mps/concurrent-gpus.js';
import type { LiveSession } from '../sessions/live-session.js';
import type { Session } from '../sessions/session.js';
import type { WarmWorker } from '../workers/warm-workers.js';
import type { Closer } from './closer.js';

/** The services that a node offers to its allocations. */
export interface AllocationHost {
  readonly installation: Installation;
  readonly launcher: Launcher;
  readonly backend: Backend;
  readonly addon: Addon;
  readonly closer: Closer;
  readonly arenas: Arenas;
  readonly logger: Logger;
  /** True: each allocation has its own driver cache. False: workers use the cache of this user. */
  readonly ownCaches: boolean;
  /** Socket where workers request GPU time; undefined: GPU time is not scheduled. */
  readonly arbiterSocket: string | undefined;
  /** Whether workers let managed memory move. */
  movesManaged(): boolean;
  /** Bytes that `what` costs: the maximum over these GPUs. */
  cost(what: DriverMemory, gpus: readonly string[]): number;
  /** Bytes of memory of these GPUs together; undefined: unknown. */
  gpuMemory(gpus: readonly string[]): number | undefined;
  /** Whether the quotas of a GPU of the allocation may exceed its memory. */
  isOversubscribed(specification: AllocationSpecification): boolean;
  /** UUIDs of GPUs to which an allocation may move, and which its workers see for that. */
  otherPlaces(gpus: readonly string[]): readonly string[];
  /** An allocation has moved to another GPU. */
  placed(specification: AllocationSpecification): void;
  /** Whether a worker may start now. False in concurrent mode while MPS is unavailable. */
  mayStart(specification: AllocationSpecification): boolean;
  /** MPS settings of its workers; undefined: they run without MPS. */
  mpsClient(specification: AllocationSpecification): MpsClient | undefined;
  /** Undefined if the connected process may use the allocation, otherwise the reason. */
  whyNotAllowed(allocation: AllocationSpecification, connection: Socket): ProxyError | undefined;
  /** A worker with a ready context on exactly these GPUs; undefined: none. */
  takeWarmWorker(gpus: readonly string[]): WarmWorker | undefined;
  /** The records of all sessions, also of those that this gpu-proxy has not taken over yet. */
  sessionRecords(): SessionRecord[];
  /** Reports an error to the user of an allocation. */
  trouble(allocation: AllocationSpecification, error: ProxyError): void;
  sessionStarted(session: LiveSession): void;
  sessionEnded(session: Session, last: LastFigures): void;
}

/** The final figures of a session, read from its files. */
export interface LastFigures {
  readonly use: SessionUse;
  readonly roundTrips: readonly number[];
}
