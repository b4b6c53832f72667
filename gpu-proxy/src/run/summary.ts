import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import type { Backend } from '../gpus/backend.js';
import { type Session, summarizeCalls } from '../sessions/session.js';

interface RunFigures {
  readonly program: string;
  readonly backend: Backend;
  /** Bytes; 0: no limit. */
  readonly memoryLimit: number;
  readonly peakMemory: number;
  readonly sessions: readonly Session[];
}

/** Problems printed even without --verbose: refusals and dead workers. */
export function problemsOf(sessions: readonly Session[]): string[] {
  const refusals = sessions.flatMap(({ refusal }) => (refusal ? [refusal] : []));
  const deaths = sessions
    .filter(({ died }) => died)
    .map((session) => `${nameOf(session)}: ${session.ended}; its later CUDA calls failed.`);
  return [...new Set(refusals), ...deaths];
}

/** The lines that `run --verbose` prints at the end. */
export function summaryOf(figures: RunFigures): string[] {
  const sessions = figures.sessions.filter(({ opened }) => opened);
  if (sessions.length === 0) return [neverCalledCuda(figures.program)];
  const gpus = new Set(
    sessions.flatMap(({ gpu }) =>
      gpu ? [`${gpu.name}, ${gpu.uuid}, ${formatMemorySize(gpu.memory)}`] : [],
    ),
  );
  const distinct = (calls: (session: Session) => Iterable<string>) =>
    [...new Set(sessions.flatMap((session) => [...calls(session)]))].sort();
  const called = distinct(({ unsupported }) => unsupported);
  const asked = distinct(({ notFound }) => notFound.program);
  const known = distinct(({ notFound }) => notFound.runtime);
  return [
    ...[...gpus].map((gpu) => `GPU: ${gpu}`),
    `backend: ${figures.backend.kind} (${figures.backend.driver})`,
    `quota: ${figures.memoryLimit === 0 ? 'the whole GPU' : formatMemorySize(figures.memoryLimit)}`,
    `peak use: ${formatMemorySize(figures.peakMemory)}`,
    `launches: ${total(sessions)}`,
    ...(called.length > 0 ? [`called and not supported: ${called.join(', ')}`] : []),
    ...(asked.length > 0 ? [`asked for and not supported: ${asked.join(', ')}`] : []),
    ...(known.length > 0
      ? [`not supported, if the program's CUDA runtime needs it: ${summarizeCalls(known)}`]
      : []),
    `sessions: ${sessions.length}`,
    ...sessions.map((session) => `  ${describe(session)}`),
  ];
}

function neverCalledCuda(program: string): string {
  return (
    `${program} never called CUDA: it opened no session. ` +
    '(A program that loads libcuda.so.1 by a full path, or is linked against another one, ' +
    'does not reach this proxy.)'
  );
}

/** The number of launches. Those of a dead worker are unknown. */
function total(sessions: readonly Session[]): string {
  const known = sessions.reduce((sum, { launches }) => sum + (launches ?? 0), 0);
  return sessions.every(({ launches }) => launches !== undefined)
    ? String(known)
    : `at least ${known}`;
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
