import path from 'node:path';
import { GPU_PROXY } from '../paths.js';
import type { Build } from './builds.js';

/**
 * Where a program runs: on this machine's driver, or through the product on a real or on the
 * simulated GPU.
 */
export const MODES = ['native', 'real', 'simulated'] as const;
export type Mode = (typeof MODES)[number];

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

export interface Column {
  readonly name: string;
  readonly mode: Mode;
  /** Every call waits for its reply. */
  readonly synchronous: boolean;
  /** The session is suspended before each call; its memory leaves and comes back. */
  readonly suspended: boolean;
  /** It also comes back on another simulated GPU. */
  readonly moves: boolean;
}

/** How the remoted modes differ from what a user has. */
type Ways = Pick<Column, 'synchronous' | 'suspended' | 'moves'>;

export function columns(modes: readonly Mode[], ways: Ways): Column[] {
  const names = Object.entries(ways).flatMap(([name, chosen]) => (chosen ? [name] : []));
  return modes.map((mode) =>
    mode === 'native'
      ? { name: mode, mode, synchronous: false, suspended: false, moves: false }
      : { name: [mode, ...names].join(', '), mode, ...ways },
  );
}

/**
 * A kernel counts the GPUs of the driver; processes share memory, so they would have to move
 * together; the driver takes no managed variable from its GPU.
 */
const STAYING = new Set([
  'dynamic_errors',
  ...['earlier_ipc', 'ipc_errors', 'ipc_events', 'ipc_memory', 'pool_sharing', 'shareable_handles'],
  ...['managed_large_variable', 'managed_variables', 'stream_memory_refused'],
]);

/** Whether its session moves between two GPUs. */
export function moves({ name, gpus }: Build, column: Column): boolean {
  return (
    column.moves &&
    column.suspended &&
    column.mode === 'simulated' &&
    gpus === 1 &&
    !STAYING.has(name)
  );
}

/** @param trace file for a trace of the run; undefined: none */
export function commandFor(
  build: Build,
  column: Column,
  directory: string,
  trace?: string,
): Command {
  const binary = path.join(directory, build.name);
  const env = environment(path.join(directory, 'lib'), column.synchronous);
  if (column.mode === 'native') return { command: binary, args: [], env };
  const memory = build.memory === null ? [] : ['--memory', build.memory];
  const managed = build.managed === null ? [] : ['--managed-memory', build.managed];
  const traced = trace === undefined ? [] : ['--trace', trace];
  return {
    command: process.execPath,
    args: [
      GPU_PROXY,
      'run',
      '--backend',
      column.mode,
      ...memory,
      ...managed,
      ...traced,
      '--',
      binary,
    ],
    env: {
      ...env,
      NVIDIA_VIRTUAL_SIMULATED_GPUS: String(build.gpus + Number(moves(build, column))),
    },
  };
}

/** @param libraries directory of libcudart.so, for programs that link it dynamically */
function environment(libraries: string, synchronous: boolean): NodeJS.ProcessEnv {
  const inherited = process.env['LD_LIBRARY_PATH'];
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    LD_LIBRARY_PATH: inherited ? `${libraries}:${inherited}` : libraries,
  };
  return synchronous ? { ...env, NVIDIA_VIRTUAL_SYNCHRONOUS: '1' } : env;
}
