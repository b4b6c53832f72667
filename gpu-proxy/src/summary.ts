import type { Backend } from './backend.js';
import { formatMemorySize } from './memory-size.js';
import type { Session } from './session.js';

export interface RunFigures {
  readonly program: string;
  readonly backend: Backend;
  /** Bytes; 0: none. */
  readonly memoryLimit: number;
  readonly peakMemory: number;
  readonly sessions: readonly Session[];
}

/** What a user must know although nobody asked: why a GPU was refused, and that a worker died. */
export function problemsOf(sessions: readonly Session[]): string[] {
  const refusals = sessions.flatMap(({ refusal }) => (refusal ? [refusal] : []));
  const deaths = sessions.filter(({ died }) => died).map((session) => `${nameOf(session)}: ${session.ended}; its later CUDA calls failed.`);
  return [...new Set(refusals), ...deaths];
}

/** What `run --verbose` says at the end. */
export function summaryOf(figures: RunFigures): string[] {
  const sessions = figures.sessions.filter(({ opened }) => opened);
  if (sessions.length === 0) return [neverCalledCuda(figures.program)];
  const gpus = new Set(sessions.flatMap(({ gpu }) => (gpu ? [`${gpu.name}, ${gpu.uuid}, ${formatMemorySize(gpu.memory)}`] : [])));
  const unsupported = [...new Set(sessions.flatMap((session) => [...session.unsupported]))];
  return [
    ...[...gpus].map((gpu) => `GPU: ${gpu}`),
    `backend: ${figures.backend.kind} (${figures.backend.driver})`,
    `quota: ${figures.memoryLimit === 0 ? 'the whole GPU' : formatMemorySize(figures.memoryLimit)}`,
    `peak use: ${formatMemorySize(figures.peakMemory)}`,
    `launches: ${total(sessions)}`,
    ...(unsupported.length > 0 ? [`not supported yet, and asked for: ${unsupported.sort().join(', ')}`] : []),
    `sessions: ${sessions.length}`,
    ...sessions.map((session) => `  ${describe(session)}`),
  ];
}

function neverCalledCuda(program: string): string {
  return `${program} never called CUDA: it opened no session. (A program that loads libcuda.so.1 by a full path, or is linked against another one, does not reach this proxy.)`;
}

/** A worker that died took its count with it. */
function total(sessions: readonly Session[]): string {
  const known = sessions.reduce((sum, { launches }) => sum + (launches ?? 0), 0);
  return sessions.every(({ launches }) => launches !== undefined) ? String(known) : `at least ${known}`;
}

function describe(session: Session): string {
  const parts = [
    `${session.seconds.toFixed(1)} s`,
    `peak ${formatMemorySize(session.peakMemory)}`,
    `${session.launches ?? 'unknown'} launches`,
    session.fault,
    session.ended,
  ];
  return `${nameOf(session)}: ${parts.filter((part) => part !== undefined).join(', ')}`;
}

function nameOf(session: Session): string {
  const { program, pid } = session.record.client;
  return `${program} (process ${pid})`;
}
