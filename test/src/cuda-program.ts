import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { cudaHome } from './conformance/builds.js';
import { INTERPOSER, REPOSITORY } from './paths.js';

/** Compiles test/AREA/NAME.cu by nvcc, as anybody would. Returns the program. */
export async function compileProgram(area: string, name: string, flags: readonly string[] = []): Promise<string> {
  const home = await cudaHome();
  const directory = path.join(REPOSITORY, 'build', area);
  mkdirSync(directory, { recursive: true });
  const program = path.join(directory, name);
  const source = path.join(REPOSITORY, 'test', area, `${name}.cu`);
  const args = ['-std=c++17', '-O2', '-I', path.join(REPOSITORY, 'test'), ...flags, source, '-o', program];
  execFileSync(path.join(home ?? '', 'bin', 'nvcc'), args, { stdio: ['ignore', 'inherit', 'inherit'] });
  return program;
}

/** What a program needs to find the proxy that serves `socket`. */
export function environmentFor(socket: string): NodeJS.ProcessEnv {
  return { ...process.env, NVIDIA_VIRTUAL_SOCKET: socket, LD_LIBRARY_PATH: INTERPOSER };
}
