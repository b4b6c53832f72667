import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { cudaHome } from './conformance/builds.js';
import { INTERPOSER, REPOSITORY } from './paths.js';

/** Compiles test/AREA/NAME.cu with nvcc, unless it is up to date. @returns the program */
export async function compileProgram(
  area: string,
  name: string,
  flags: readonly string[] = [],
): Promise<string> {
  const home = await cudaHome();
  const directory = path.join(REPOSITORY, 'build', area);
  mkdirSync(directory, { recursive: true });
  const program = path.join(directory, name);
  const source = path.join(REPOSITORY, 'test', area, `${name}.cu`);
  const args = [
    '-std=c++17',
    '-O2',
    '-I',
    path.join(REPOSITORY, 'test'),
    ...flags,
    source,
    '-o',
    program,
  ];
  const compiler = path.join(home, 'bin', 'nvcc');
  const command = [compiler, ...args].join(' ');
  if (isFresh(program, command)) return program;
  rmSync(`${program}.command`, { force: true }); // an incomplete file never counts as up to date
  await promisify(execFile)(compiler, [...args, '-MD', '-MF', `${program}.d`], {
    maxBuffer: 1 << 26,
  });
  writeFileSync(`${program}.command`, command);
  return program;
}

/** Whether it was built by the same command, and after the last change of all its sources. */
function isFresh(program: string, command: string): boolean {
  try {
    if (readFileSync(`${program}.command`, 'utf8') !== command) return false;
    const made = statSync(program).mtimeMs;
    const [, files = ''] = readFileSync(`${program}.d`, 'utf8')
      .replaceAll('\\\n', ' ')
      .split(/:\s/);
    return files
      .trim()
      .split(/\s+/)
      .every((file) => statSync(file).mtimeMs < made);
  } catch {
    return false;
  }
}

/** Environment in which a program finds the proxy that serves `socket`. */
export function environmentFor(socket: string): NodeJS.ProcessEnv {
  return { ...process.env, NVIDIA_VIRTUAL_SOCKET: socket, LD_LIBRARY_PATH: INTERPOSER };
}
