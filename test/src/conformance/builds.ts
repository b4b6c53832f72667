import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { REPOSITORY } from '../paths.js';

/** One way to build one program, as record.py lists them. */
export interface Build {
  readonly name: string;
  readonly hash: string;
  readonly memory: string | null;
  readonly unordered: string | null;
  /** It looks at the GPU's free memory: nothing may run beside it. */
  readonly alone: boolean;
}

const RECORDER = path.join(REPOSITORY, 'test', 'conformance', 'record.py');

export function listBuilds(): Build[] {
  return JSON.parse(python(['list'])) as Build[];
}

/** Compiles what changed; throws with the compiler's words when something does not compile. */
export function compileBuilds(directory: string, cudaHome: string | undefined): void {
  python(['build', directory], cudaHome === undefined ? {} : { CUDA_HOME: cudaHome });
}

/** The compiler's home: the one that the caller names, else the one that the toolchain finds or fetches. */
export async function cudaHome(): Promise<string | undefined> {
  if (process.env['CUDA_HOME'] !== undefined) return process.env['CUDA_HOME'];
  const { cudaCompiler } = await import('@nvidia-virtual/toolchain/cuda-compiler');
  const { nvcc } = await cudaCompiler((line) => console.log(line));
  return path.dirname(path.dirname(nvcc));
}

function python(args: readonly string[], environment: NodeJS.ProcessEnv = {}): string {
  const options = { encoding: 'utf8', env: { ...process.env, ...environment }, maxBuffer: 1 << 26 } as const;
  const done = spawnSync('python3', [RECORDER, ...args], options);
  if (done.status !== 0) throw new Error(`record.py ${args.join(' ')} failed:\n${done.error?.message ?? done.stderr}`);
  return done.stdout;
}
