import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';

/** One build of one program, as listed by record.py. */
export interface Build {
  readonly name: string;
  readonly files: readonly string[];
  readonly hash: string;
  readonly memory: string | null;
  /** `--managed-memory` of gpu-proxy. */
  readonly managed: string | null;
  /** How many GPUs it needs. It gets as many simulated ones. */
  readonly gpus: number;
  readonly unordered: string | null;
  /** The program reads the GPU's free memory: nothing may run beside it. */
  readonly alone: boolean;
  /** The program exits with status 0 if its result is correct, so it needs no recording. */
  readonly judgesItself: boolean;
}

const RECORDER = path.join(REPOSITORY, 'test', 'conformance', 'record.py');

export function listBuilds(): Build[] {
  return JSON.parse(python(['list'])) as Build[];
}

/** How many GPUs nvidia-smi lists; 0 without it. */
export function gpusOfMachine(): number {
  const done = spawnSync('nvidia-smi', ['--list-gpus'], { encoding: 'utf8' });
  return done.status === 0 ? (done.stdout.match(/^GPU \d+:/gm) ?? []).length : 0;
}

/** The day on which the files of a program last changed: YYYY-MM-DD, or `now` if not committed. */
export function lastChange(files: readonly string[]): string {
  const programs = path.join(REPOSITORY, 'test', 'conformance', 'programs');
  const args = ['log', '-1', '--format=%as', '--', ...files];
  const done = spawnSync('git', args, { cwd: programs, encoding: 'utf8' });
  return done.stdout?.trim() || 'now';
}

/** Compiles what changed. @throws Error with the compiler's output */
export function compileBuilds(directory: string, cudaHome: string): void {
  python(['build', directory], { CUDA_HOME: cudaHome });
}

/** CUDA_HOME of the environment, or that of the compiler that the toolchain finds or downloads. */
export async function cudaHome(): Promise<string> {
  // A machine with CUDA_HOME may lack the toolchain: test/pack.sh.
  if (process.env['CUDA_HOME'] !== undefined) return process.env['CUDA_HOME'];
  const toolchain = await import('@nvidia-virtual/toolchain/cuda-compiler');
  return toolchain.cudaHome((line) => console.log(line));
}

function python(args: readonly string[], environment: NodeJS.ProcessEnv = {}): string {
  const options = {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
    maxBuffer: 1 << 26,
  } as const;
  const done = spawnSync('python3', [RECORDER, ...args], options);
  if (done.status !== 0)
    throw new Error(`record.py ${args.join(' ')} failed:\n${done.error?.message ?? done.stderr}`);
  return done.stdout;
}
